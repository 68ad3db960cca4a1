--- Prune: drop old events and entries past their time; the store does a little of it by itself.
--
-- KEYS  1 the store
-- ARGV  1 the command: keep (events of each topic), keep_for, limit, done (false: finished messages stay)
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers how much was dropped. Looks after a thousand logs at a time, going on where the last one stopped. Answers
-- to repeated commands, and the logs of leases and of what was dropped, also expire by themselves.
-- @include queue
-- @include dict

local prune = {}

local LOGS = 1000

function prune.check()
  return nil
end

--- Remove messages that a queue has kept long enough since they were done.
local function prune_queue(queue, limit)
  return call("EXISTS", queue.key .. ":done") == 1 and load_rules().prune_done(queue, limit) or 0
end

function prune.write(command)
  local dropped = 0
  each_log(LOGS, function(kind, name, key)
    dropped = dropped + prune_log(key, command.keep, now - command.keep_for, now - RETRY_S * 1000000, command.limit)
    if kind == "lease" then
      call("EXPIRE", key .. ":floor", RETAINED_S)
    elseif kind == "queue" and command.done then
      dropped = dropped + prune_queue(open_queue(name), command.limit)
    elseif kind == "dict" then
      dropped = dropped + expire_entries(open_dict(name), command.limit)
    end
  end)
  return dropped
end

commands.Prune = prune
