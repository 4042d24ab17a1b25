"""What can be offered to the window beside the conversation itself. Sources do not know each
other."""
