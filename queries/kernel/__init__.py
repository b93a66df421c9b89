"""The trusted part of reasoning: theorems, the rules that make them, and the statements that they make."""
