"""Recorded sessions, run again through the window offline."""
