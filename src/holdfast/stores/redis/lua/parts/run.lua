--- Runs the command of this script, or answers it again if it ran before. The last part of every script.

--- Tell those who wait. Whether anybody does is asked first: a hint that nobody hears would still go to every replica.
--
-- Never fails the step, which is written: a user who may not publish is left with polling.
local function give_hints()
  for first = 1, #hints.topics, CHUNK do
    local channels = {}
    for i = first, math.min(first + CHUNK - 1, #hints.topics) do
      channels[#channels + 1] = store .. ":wake:" .. hints.topics[i]
    end
    local heard = redis.pcall("PUBSUB", "NUMSUB", unpack(channels))
    for i, channel in ipairs(channels) do
      if not heard.err and heard[2 * i] > 0 then
        redis.pcall("PUBLISH", channel, text(hints.counts[hints.topics[first + i - 1]]))
      end
    end
  end
end

--- Write everything that the step has worked out.
local function finish()
  for _, write in ipairs(writers) do
    write()
  end
  if numbers.drawn then
    call("SET", numbers.key, text(numbers.last))
  end
end

local function run(name)
  local action, command, id = commands[name], cmsgpack.unpack(ARGV[1]), ARGV[2]
  local answer_key = (KEYS[2] or store) .. ":answer:" .. id
  local note = id ~= "" and call("GET", answer_key)
  if note then
    return action.recall and cmsgpack.pack(action.recall(command, cmsgpack.unpack(note))) or note
  end
  local moved = call("GET", store .. ":moved")
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
  if id ~= "" then
    call("SET", answer_key, remembered and cmsgpack.pack(remembered) or packed, "EX", RETRY_S)
  end
  give_hints()
  return packed
end
