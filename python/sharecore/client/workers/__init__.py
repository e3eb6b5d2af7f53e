"""Workers: one handler call per record, several at once, with retries in place."""
