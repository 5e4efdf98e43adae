"""What each command does; the parser is in cli.py."""
