--- Extend: renew claims from now on; a lease of 0 ends them now, none lets them hold without end.
--
-- KEYS  1 the store  2… the queues of the receipts
-- ARGV  1 the command: queues (one, or one each), ids, tokens, lease, all_or_none, progress
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers held, a flag each.
-- @include claims

local extend = {}

function extend.check(command)
  return held_by(command)
end

function extend.write(command, held)
  for _, group in ipairs(by_queue(command, held)) do
    for _, message in ipairs(group.messages) do
      touch(group.queue, message)
      message["until"] = command.lease and now + command.lease or NEVER
      if command.progress then
        message.failures = nil
      end
    end
    if command.lease == 0 then
      announce(group.queue, group.messages)
    end
  end
  return flags(held)
end

commands.Extend = extend
