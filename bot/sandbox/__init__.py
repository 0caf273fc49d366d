"""The sandbox: simulated services that the demo and the tests run against, known to a bot by wire format only."""
