"""One job or several, without a study: what was held and used, over time, and what differs."""
