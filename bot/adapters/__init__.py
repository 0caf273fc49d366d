"""The world: each module speaks to one part of it and translates its errors into the two kinds of `bot.ports`."""
