"""The demonstration: a recorded agent session through the real proxy, on this machine alone.
`hotset demo` runs it."""
