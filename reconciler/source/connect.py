"""Opens the cluster's repository and its recorder from the settings; used by every program that needs Git."""

from datetime import timedelta

from reconciler.settings import GitSettings, SettingsError
from reconciler.source.git_recorder import GitRecorder
from reconciler.source.github import GitHubHost, GitHubRecorder
from reconciler.source.recording import Person, Recorder
from reconciler.source.repository import Repository


def open_repository(git: GitSettings) -> Repository:
    """Return the mirror of the repository; raises SettingsError. Fetches nothing yet."""
    branches = (git.config_branch, git.incidents_branch)
    try:
        return Repository(
            git.url, git.mirror, git.token_file, branches, timedelta(seconds=git.timeout_seconds)
        )
    except ValueError as error:
        raise SettingsError(f"git: {error}") from error


def open_recorder(git: GitSettings, repository: Repository) -> Recorder:
    """Return the recorder of the incident branch; raises SettingsError. Sends nothing yet."""
    committer = Person(git.committer_name, git.committer_email)
    if git.backend == "git":
        return GitRecorder(repository, git.incidents_branch, committer)
    if git.repository is None or git.token_file is None:
        raise SettingsError('git.token_file: is missing; backend "github" needs it')
    host = GitHubHost(git.api_url, git.repository, git.token_file)
    return GitHubRecorder(host, git.incidents_branch, committer)
