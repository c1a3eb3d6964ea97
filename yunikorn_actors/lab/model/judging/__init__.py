"""What decisions are judged by, and what must hold at rest: a module for each noun."""
