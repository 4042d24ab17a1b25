"""Texts to vectors, offline: `port` (what an embedder is), `table` (always there), `minilm` and
`endpoint` (by configuration)."""
