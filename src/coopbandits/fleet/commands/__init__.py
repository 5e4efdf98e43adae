"""What the commands `coop node` and `coop up` do."""
