"""Where tools come from: skills, servers, and what an agent wrote. Everything is read, nothing is
run."""
