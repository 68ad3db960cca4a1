--- Runs the command of this script, or answers it again if it ran before. The last part of every script.

--- Write everything that the step has worked out.
local function finish()
  for _, write in ipairs(writers) do
    write()
  end
  if numbers.drawn then
    call("SET", counter_key, text(numbers.last))
  end
end

local function run(name)
  local action = commands[name]
  local note = command_id ~= "" and call("GET", answer_key)
  if note then
    return action.recall and cmsgpack.pack(action.recall(command, cmsgpack.unpack(note))) or note
  end
  local moved = call("GET", moved_key)
  if moved then
    return { "StoreMoved", cmsgpack.pack({ where = store, to = moved }) }
  end
  local is_fine, plan = pcall(action.check, command)
  if not is_fine then
    if type(plan) == "table" and plan.refused then
      return { plan.refused, cmsgpack.pack(plan.facts) }
    end
    error(plan, 0)
  end
  local answer, remembered = action.write(command, plan)
  finish()
  local packed = cmsgpack.pack(answer)
  keep_answer(remembered and cmsgpack.pack(remembered) or packed)
  give_hints(hints.channels, hints.counts)
  return packed
end
