"""Public data sets as problems and logs: real people, real prompts, a real shop's clicks.

Files are read from a path that the user gives; none are shipped, and their licences are the user's
to keep (docs/real-people.md). Nothing is imported here, so that `coop --help` starts at once.
"""
