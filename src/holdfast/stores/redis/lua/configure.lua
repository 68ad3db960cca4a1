--- Configure: create a queue or a dict, or change its settings; what is not given stays.
--
-- KEYS  1 the store  2 the queue or dict
-- ARGV  1 the command: kind, name and, where they are to change, paused, maxsize (false: no limit)
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers paused, maxsize, size and created_at.
-- @include queue
-- @include dict

local configure = {}

local function open_object(command)
  return command.kind == "queue" and open_queue(command.name) or open_dict(command.name)
end

function configure.check(command)
  local before = settings_of(open_object(command))
  local after = { created_at = before and before.created_at or now, paused = before and before.paused or false }
  after.maxsize = before and before.maxsize
  if command.paused ~= nil then
    after.paused = command.paused
  end
  if command.maxsize ~= nil then
    after.maxsize = command.maxsize or nil
  end
  local is_same = before and before.paused == after.paused and before.maxsize == after.maxsize
  return { after = after, is_same = is_same }
end

function configure.write(command, plan)
  local object, after = open_object(command), plan.after
  if not plan.is_same then
    object.settings, object.is_configured = after, true
    keep_log(object)
    if command.kind == "queue" then
      tell(object, "configured", { paused = after.paused, maxsize = after.maxsize or false })
      wake(object.topic, ALL)
      wake("room:" .. object.name, ALL)
    else
      tell(object, "configured", {})
    end
  end
  local size = after.maxsize and ready_count(object) or 0
  return { paused = after.paused, maxsize = after.maxsize, size = size, created_at = after.created_at }
end

commands.Configure = configure
