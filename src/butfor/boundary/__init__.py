"""What comes from outside: arguments, files, text and plug-ins, each checked before anything relies on it."""
