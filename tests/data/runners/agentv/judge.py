"""A judge of AgentV that passes every answer."""

print('{"score": 1, "assertions": [{"text": "it answers", "passed": true}]}')
