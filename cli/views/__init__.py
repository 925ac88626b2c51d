"""What a pipeline of any file is doing: status, explanations, decisions, schemas, conflicts."""
