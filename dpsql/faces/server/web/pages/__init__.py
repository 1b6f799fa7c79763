"""Pages of the console: functions of what was answered to HTML. None of them asks for anything."""
