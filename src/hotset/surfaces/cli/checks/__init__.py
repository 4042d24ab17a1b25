"""What `hotset doctor` looks at: each module answers one question, each check gives findings and
changes nothing."""
