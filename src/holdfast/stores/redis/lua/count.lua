--- Count: sizes, ages and holders of a queue. A message whose lease has ended counts as ready.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers ready, delayed, buffered, leased, dead and holders, and the ages in microseconds. Costs by how many are leased.
-- @include browsing

local count = {}

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
  local sum, oldest, holders = 0, now, {}
  local from = "[" .. sortable(now + 1)
  repeat
    local members = call("ZRANGEBYLEX", queue.key .. ":leased", from, "+", "LIMIT", 0, PAGE)
    local fields = {}
    for i, member in ipairs(members) do
      fields[i] = id_in("leased", member) .. "\0"
    end
    for _, packed in ipairs(fields_of(queue.key .. ":messages", fields)) do
      local claim = cmsgpack.unpack(packed)
      stats.leased = stats.leased + 1
      holders[claim.holder] = (holders[claim.holder] or 0) + 1
      sum, oldest = sum + (now - claim.since), math.min(oldest, claim.since)
    end
    from = "(" .. (members[#members] or "")
  until #members < PAGE
  stats.ready = stats.ready + size(queue, "leased") - stats.leased
  if stats.leased > 0 then
    stats.holders = holders
    stats.oldest_leased, stats.average_leased = now - oldest, sum / stats.leased
  end
end

function count.check(command)
  local queue = open_queue(command.queue)
  local stats = { delayed = 0, leased = 0, buffered = size(queue, "buffered"), dead = size(queue, "dead") }
  count_ready(queue, stats)
  count_leased(queue, stats)
  local first = call("ZRANGEBYLEX", queue.key .. ":dead", "-", "+", "LIMIT", 0, 1)[1]
  stats.oldest_dead = first and now - struct.unpack(NUMBER, first) or nil
  return stats
end

function count.write(_, stats)
  return stats
end

commands.Count = count
