"""What all tests share: the API servers, one of each back end per worker."""

pytest_plugins = ["tests.lab.kube.fixture"]
