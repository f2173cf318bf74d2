"""The MCP door: working memory for an agent that lives in somebody else's program, over stdio or HTTP."""
