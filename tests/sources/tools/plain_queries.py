"""A library as people have it, and plain queries for which a tool that reads must come before one
that writes, or the other way round."""

from __future__ import annotations

from hotset.nouns.tool import OriginKind, Tool

_SERVERS = {
    "git": """
        git_status: Shows the working tree status
        git_diff_unstaged: Shows changes in the working directory that are not yet staged
        git_diff_staged: Shows changes that are staged for commit
        git_diff: Shows differences between branches or commits
        git_commit: Records changes to the repository
        git_add: Adds file contents to the staging area
        git_reset: Unstages all staged changes
        git_log: Shows the commit logs
        git_create_branch: Creates a new branch from an optional base branch
        git_checkout: Switches branches
        git_show: Shows the contents of a commit
        git_branch: List Git branches
    """,
    "github": """
        create_issue: Create a new issue in a GitHub repository
        list_issues: List issues in a GitHub repository with filtering options
        get_issue: Get details of a specific issue in a GitHub repository
        update_issue: Update an existing issue in a GitHub repository
        add_issue_comment: Add a comment to an existing issue
        search_issues: Search for issues and pull requests across GitHub repositories
        create_pull_request: Create a new pull request in a GitHub repository
        list_pull_requests: List and filter repository pull requests
        merge_pull_request: Merge a pull request
        get_pull_request_files: Get the list of files changed in a pull request
        create_repository: Create a new GitHub repository in your account
        search_repositories: Search for GitHub repositories
        fork_repository: Fork a GitHub repository to your account
        push_files: Push multiple files to a GitHub repository in a single commit
        get_file_contents: Get the contents of a file or directory from a GitHub repository
        list_commits: Get list of commits of a branch in a GitHub repository
    """,
    "filesystem": """
        read_file: Read the complete contents of a file from the file system
        write_file: Create a new file or completely overwrite an existing file with new content
        edit_file: Make line-based edits to a text file
        create_directory: Create a new directory or ensure a directory exists
        list_directory: Get a detailed listing of all files and directories in a specified path
        move_file: Move or rename files and directories
        delete_file: Delete a file
        search_files: Recursively search for files and directories matching a pattern
        get_file_info: Retrieve detailed metadata about a file or directory
    """,
    "mail": """
        send_email: Sends a new email
        draft_email: Draft a new email
        read_email: Retrieves the content of a specific email
        search_emails: Searches for emails using Gmail search syntax
        delete_email: Permanently deletes an email
        list_email_labels: Retrieves all available Gmail labels
    """,
    "calendar": """
        list_events: List events from one or more calendars
        create_event: Create a new calendar event
        update_event: Update an existing calendar event
        delete_event: Delete a calendar event
        get_freebusy: Retrieve free/busy information for one or more calendars
    """,
    "database": """
        read_query: Execute a SELECT query on the SQLite database
        write_query: Execute an INSERT, UPDATE, or DELETE query on the SQLite database
        create_table: Create a new table in the SQLite database
        list_tables: List all tables in the SQLite database
        describe_table: Get the schema information for a specific table
    """,
    "browser": """
        browser_navigate: Navigate to a URL
        browser_click: Perform click on a web page
        browser_type: Type text into editable element
        browser_take_screenshot: Take a screenshot of the current page
        browser_console_messages: Returns all console messages
        browser_network_requests: Returns all network requests since loading the page
    """,
    "slack": """
        slack_list_channels: List public channels in the workspace with pagination
        slack_post_message: Post a new message to a Slack channel
        slack_reply_to_thread: Reply to a specific message thread in Slack
        slack_add_reaction: Add a reaction emoji to a message
        slack_get_channel_history: Get recent messages from a channel
        slack_get_thread_replies: Get all replies in a message thread
        slack_get_users: Get a list of all users in the workspace with their profiles
    """,
}

LIBRARY = tuple(
    Tool(
        f"{server}__{name.strip()}",
        server,
        OriginKind.SERVER,
        name.strip(),
        told.strip(),
        b'{"type":"object","properties":{}}',
    )
    for server, lines in _SERVERS.items()
    for name, told in (line.split(":", 1) for line in lines.strip().splitlines())
)

BUILT_WITH = (
    ("commit history", "git_log", "git_commit"),
    ("commit my changes", "git_commit", "git_log"),
    ("what issues are open", "list_issues", "create_issue"),
    ("open an issue about the crash", "create_issue", "list_issues"),
    ("which events are in my calendar", "list_events", "create_event"),
    ("put a meeting into the calendar", "create_event", "list_events"),
    ("look at the mail from Anna", "read_email", "send_email"),
    ("email the report to Anna", "send_email", "search_emails"),
    ("tables in the database", "list_tables", "create_table"),
    ("add a table for orders", "create_table", "list_tables"),
    ("pull requests waiting for review", "list_pull_requests", "create_pull_request"),
    ("make a pull request", "create_pull_request", "list_pull_requests"),
    ("recent messages of the channel", "slack_get_channel_history", "slack_post_message"),
    ("tell the channel that the release is out", "slack_post_message", "slack_get_channel_history"),
    ("contents of a file", "read_file", "write_file"),
    ("save this text to a file", "write_file", "read_file"),
    ("list branches", "git_branch", "git_create_branch"),
    ("remove the file", "delete_file", "search_files"),
    ("rows of the orders table", "read_query", "write_query"),
    ("insert a row into orders", "write_query", "read_query"),
)
"""Query, the right tool, and the one that it must come before."""

HELD_OUT = (
    ("who committed last", "git_log", "git_commit"),
    ("record what I changed in the repository", "git_commit", "git_log"),
    ("see the issue about login", "get_issue", "update_issue"),
    ("report a bug on github", "create_issue", "get_issue"),
    ("am I free tomorrow, show my events", "list_events", "delete_event"),
    ("schedule an appointment", "create_event", "list_events"),
    ("find emails about the invoice", "search_emails", "send_email"),
    ("write an email to Bob", "send_email", "read_email"),
    ("what tables exist", "list_tables", "create_table"),
    ("set up a new table", "create_table", "describe_table"),
    ("merged pull requests", "list_pull_requests", "create_pull_request"),
    ("answer in the thread", "slack_reply_to_thread", "slack_get_thread_replies"),
    ("replies in the thread", "slack_get_thread_replies", "slack_reply_to_thread"),
    ("post an announcement on slack", "slack_post_message", "slack_get_channel_history"),
    ("what does the file say", "read_file", "write_file"),
    ("overwrite the file with new content", "write_file", "read_file"),
    ("start a new branch", "git_create_branch", "git_branch"),
    ("log of commits", "git_log", "git_commit"),
    ("cancel the meeting in my calendar", "delete_event", "list_events"),
    ("which files are in this folder", "list_directory", "create_directory"),
)
"""The same; only how many are right was seen while the rules were made."""
