"""All that is trusted of reasoning: theorems, their rules, and what they are about."""
