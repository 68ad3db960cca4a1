--- Sizes, ages and holders of a queue. A message whose lease has ended counts as ready.
-- @include browsing

local function size(queue, order)
  return call("ZCARD", queue.key .. ":" .. order)
end

local function count_ready(queue, stats)
  local oldest
  each_priority(queue, function(prefix, position)
    stats.delayed = stats.delayed + call("ZLEXCOUNT", queue.key .. ":ready", "[" .. prefix .. sortable(now + 1), "(" .. prefix .. AFTER_ALL)
    oldest = math.min(oldest or position, position)
  end)
  stats.ready = size(queue, "ready") - stats.delayed
  stats.oldest_ready = oldest and oldest <= now and now - oldest or nil
end

local function count_leased(queue, stats)
  local from = "[" .. sortable(now + 1)
  stats.leased = call("ZLEXCOUNT", queue.key .. ":leased", from, "+")
  stats.ready = stats.ready + size(queue, "leased") - stats.leased
  local fields = call("ZRANGEBYLEX", queue.key .. ":leased", from, "+", "LIMIT", 0, {{HELD_SEEN}})
  for i, member in ipairs(fields) do
    fields[i] = id_in("leased", member) .. "\0"
  end
  local sum, oldest, holders = 0, now, {}
  for _, packed in ipairs(fields_of(queue.key .. ":messages", fields)) do
    local claim = cmsgpack.unpack(packed)
    holders[claim.holder] = (holders[claim.holder] or 0) + 1
    sum, oldest = sum + (now - claim.since), math.min(oldest, claim.since)
  end
  if #fields > 0 then
    stats.holders = holders
    stats.oldest_leased, stats.average_leased = now - oldest, sum / #fields
  end
end

local STATES = { "ready", "leased", "dead", "buffered", "done" }

--- The same of what a filter lets through, message by message, behind a place (see Place).
local function count_found(queue, which, after)
  local stats, sums = { ready = 0, delayed = 0, leased = 0, buffered = 0, dead = 0, done = 0 }, { since = 0, first = nil, position = nil, dead_at = nil }
  local holders = {}
  local function add_one(message)
    local state = state_of(message)
    if state == "ready" then
      state = message.position > now and "delayed" or "ready"
      sums.position = math.min(sums.position or message.position, message.position)
    elseif state == "leased" then
      state = is_held(message) and "leased" or "ready"
      if state == "leased" then
        sums.since, sums.first = sums.since + message.since, math.min(sums.first or message.since, message.since)
        holders[message.holder] = (holders[message.holder] or 0) + 1
      end
    elseif state == "dead" then
      sums.dead_at = math.min(sums.dead_at or message.dead_at, message.dead_at)
    end
    stats[state] = stats[state] + 1
  end
  local walk, is_behind = walk_of(queue, which), not after
  for _, state in ipairs(STATES) do
    local is_first = not is_behind and state == after.state
    is_behind = is_behind or is_first
    if is_behind and walk.left > 0 then
      for _, message in ipairs((browse_state(walk, state, is_first and after.cursor or nil, math.huge))) do
        add_one(message)
      end
    end
  end
  if walk.left == 0 then
    stats.after = { state = state_of(walk.last), cursor = place_of(walk.last) }
  end
  stats.oldest_ready = sums.position and sums.position <= now and now - sums.position or nil
  stats.oldest_dead = sums.dead_at and now - sums.dead_at or nil
  if stats.leased > 0 then
    stats.holders, stats.oldest_leased, stats.average_leased = holders, now - sums.first, now - sums.since / stats.leased
  end
  return stats
end

--- Those of a queue, or of what a filter lets through.
local function stats_of(queue, which, after)
  if which and next(which) then
    return count_found(queue, which, after)
  end
  local stats = { delayed = 0, leased = 0, buffered = size(queue, "buffered"), dead = size(queue, "dead") }
  count_ready(queue, stats)
  count_leased(queue, stats)
  local first = call("ZRANGEBYLEX", queue.key .. ":dead", "-", "+", "LIMIT", 0, 1)[1]
  stats.oldest_dead = first and now - struct.unpack(NUMBER, first) or nil
  stats.done = size(queue, "done")
  return stats
end
