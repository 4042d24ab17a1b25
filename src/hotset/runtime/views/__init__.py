"""What people look at: functions that read a project, for the dashboard and the command line."""
