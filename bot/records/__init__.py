"""The bot's side of the incident branch: the values it writes, and the stories that it reads back.

`value` is what stands in the files, `event` turns an incident into the next commit, `story` folds a
directory's files back into an incident, `ledger` is the one reader and the one writer thread.
"""
