"""What an operator chose. The only reader of the environment and of TOML."""
