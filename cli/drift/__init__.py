"""What differs between a target's tables and what was decided: shown, healed or adopted."""
