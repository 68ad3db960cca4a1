--- Count: sizes, ages and holders of a queue.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue, which (see Filter), after  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers ready, delayed, buffered, leased, dead and holders, the ages in microseconds, and where a filter goes on.
-- @include counting

local count = {}

function count.check(command)
  return stats_of(open_queue(command.queue), command.which, command.after)
end

function count.write(_, stats)
  return stats
end

commands.Count = count
