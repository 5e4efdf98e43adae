"""What does each command of `coop` do? One file each; the parser is elsewhere."""
