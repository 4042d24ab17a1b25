"""The runtime: `walk` is the product on one page, read it first."""
