"""The library of tools: found in skills, servers and programs, kept in a catalogue, searched, run out of process, and let go."""
