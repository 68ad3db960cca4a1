--- The lanes of a queue: one for each group. Used by the full rules and by the fast paths of queues with groups; see commands/lanes.py.
--
-- Under the key of such a queue Q lie
--   Q:lanes    lane, NUL, level from the top, rank, n, id: the messages in line        sorted set of score 0
--   Q:delayed  position, n, id: the ready messages that are out of line, not due yet   sorted set of score 0
--   Q:lane     lane -> what is known of it, packed                                     hash
--   Q:groups   lanes, by name                                                          sorted set of score 0
--   Q:open     turn, place, lane: those whose first message may be claimed             sorted set of score 0
--   Q:asleep   lanes that time alone opens or ends                                     sorted set, by that moment and name
-- `refresh` alone decides where a lane stands.
-- @include begin
-- @include micros
-- @include lane_place

local lanes = {}

do
  -- Turn, place, wakes, tat, last, throttled_until, live, credit, open; the packed settings of its own follow.
  local LANE = ">I8I4I8I8I8I8I4I4B"
  local NO_SETTINGS = {}

  --- A lane as it was packed, or a new one.
  function lanes.read(name, packed)
    if not packed then
      return { name = name, turn = 0, place = 0, wakes = 0, tat = 0, last = 0, throttled_until = 0, live = 0, credit = 0, own = NO_SETTINGS, was = {} }
    end
    local turn, place, wakes, tat, last, throttled, live, credit, open, own_at = struct.unpack(LANE, packed)
    local lane = { name = name, turn = turn, place = place, wakes = wakes, tat = tat, last = last, throttled_until = throttled, live = live }
    lane.credit, lane.open = credit, open == 1
    lane.own = #packed >= own_at and cmsgpack.unpack(string.sub(packed, own_at)) or NO_SETTINGS
    lane.was = { packed = packed, open_at = lane.open and string.sub(packed, 1, 12) .. name or nil, wakes = wakes }
    return lane
  end

  --- How many messages of a lane may be claimed at once, nil for any number.
  function lanes.limit_of(lane, policy)
    return policy.groups == "strict" and 1 or lane.own.limit or policy.group_limit
  end

  function lanes.rate_of(lane, policy)
    return lane.own.rate or policy.group_rate
  end

  --- The time that one message takes of a rate, in whole microseconds.
  function lanes.interval_of(rate)
    return math.ceil(rate.per_s * 1000000 / rate.count)
  end

  --- When a rate lets the next message through.
  function lanes.free_at(tat, rate)
    return tat - (rate.burst - 1) * lanes.interval_of(rate)
  end

  --- How many messages a rate lets through now.
  function lanes.allowed(tat, rate)
    local interval, from = lanes.interval_of(rate), math.max(tat, now)
    local until_then = now + (rate.burst - 1) * interval
    return from <= until_then and math.floor((until_then - from) / interval) + 1 or 0
  end

  --- The same rate after so many messages, or fewer.
  function lanes.used(tat, rate, count)
    return (count > 0 and math.max(tat, now) or tat) + count * lanes.interval_of(rate)
  end

  --- Work out where a lane stands, given the position of its first message, nil where none is in line; a lane that becomes busy begins at
  -- the end of the round, which is `number`.
  function lanes.refresh(lane, policy, head, number)
    local own, limit, rate = lane.own, lanes.limit_of(lane, policy), lanes.rate_of(lane, policy)
    local opens = math.max(policy.groups == "strict" and head or 0, rate and lanes.free_at(lane.tat, rate) or 0, lane.throttled_until)
    local can_open = head and not own.paused and not (limit and lane.live >= limit)
    local is_idle = not head and lane.live == 0
    lane.open = can_open and opens <= now or false
    lane.wakes = 0
    if can_open and opens > now then
      lane.wakes = opens
    elseif policy.groups and is_idle and math.max(lane.tat, lane.throttled_until) > now then
      lane.wakes = math.max(lane.tat, lane.throttled_until)
    end
    if is_idle then
      lane.turn, lane.place, lane.credit = 0, 0, 0
    elseif lane.turn == 0 then
      lane.turn, lane.credit = number, own.weight or 1
    else
      lane.credit = math.min(lane.credit, own.weight or 1)
    end
  end

  --- Whether a lane that is not open gives something by itself, and sooner than it did, 0 for never.
  function lanes.is_sooner(lane, woke)
    return not lane.open and lane.wakes ~= 0 and (woke == 0 or lane.wakes < woke)
  end

  local function send(name, key, arguments)
    for first = 1, #arguments, CHUNK do
      call(name, key, unpack(arguments, first, math.min(first + CHUNK - 1, #arguments)))
    end
  end

  --- What is to be kept of a lane, and its member of Q:open, nil where it is not open; nothing where nothing is to be known.
  local function kept_of(lane)
    local own = next(lane.own) and cmsgpack.pack(lane.own) or ""
    if own == "" and lane.turn == 0 and lane.live == 0 and lane.wakes == 0 then
      return nil
    end
    local is_open, tat, last = lane.open and 1 or 0, lane.tat, lane.last
    local packed = struct.pack(LANE, lane.turn, lane.place, lane.wakes, tat, last, lane.throttled_until, lane.live, lane.credit, is_open)
    return packed .. own, lane.open and string.sub(packed, 1, 12) .. lane.name or nil
  end

  --- Write lanes that were refreshed, with as few calls as for one; those of which nothing is to be known go.
  function lanes.save(key, refreshed)
    local rows, gone, new, closed, opened, asleep, awake = {}, {}, {}, {}, {}, {}, {}
    for _, lane in ipairs(refreshed) do
      local was, name, wakes = lane.was, lane.name, lane.wakes
      local packed, open_at = kept_of(lane)
      if packed and packed ~= was.packed then
        rows[#rows + 1], rows[#rows + 2] = name, packed
        if not was.packed then
          new[#new + 1], new[#new + 2] = "0", name
        end
      elseif was.packed and not packed then
        gone[#gone + 1] = name
      end
      if open_at ~= was.open_at then
        closed[#closed + 1] = was.open_at
        if open_at then
          opened[#opened + 1], opened[#opened + 2] = "0", open_at
        end
      end
      if wakes ~= 0 and wakes ~= was.wakes then
        asleep[#asleep + 1], asleep[#asleep + 2] = text(wakes), name
      elseif wakes == 0 and (was.wakes or 0) ~= 0 then
        awake[#awake + 1] = name
      end
      lane.was = { packed = packed, open_at = open_at, wakes = wakes }
    end
    send("HSET", key .. ":lane", rows)
    send("ZADD", key .. ":groups", new)
    send("HDEL", key .. ":lane", gone)
    send("ZREM", key .. ":groups", gone)
    send("ZREM", key .. ":open", closed)
    send("ZADD", key .. ":open", opened)
    send("ZADD", key .. ":asleep", asleep)
    send("ZREM", key .. ":asleep", awake)
  end

  --- The level and the rank of a message, or of one with these options, in its lane.
  function lanes.place_of(policy, message, position)
    local priority = message.priority or 0
    if policy.groups == "strict" then
      return 0, position
    end
    local rank = policy.order == "lifo" and -position or position
    if not policy.aging_s then
      return priority, rank
    end
    return 0, math.max(-LAST, math.min(rank - priority * micros(policy.aging_s), LAST))
  end

  --- Let lanes give their messages in rounds, each as many in a round as its credit says, until there is no room left.
  --
  -- `fetch` brings more of a lane's messages into `line`; `most` says how many it may give at all. Answers which lane gave which of its
  -- messages, in this order; `given`, `renewed_at` and `left` of a lane are for `take_turn`.
  function lanes.share_out(served, room, fetch)
    local order, gave = {}, false
    for _, lane in ipairs(served) do
      lane.given, lane.renewed_at, lane.left = 0, 0, lane.credit
    end
    repeat
      gave = false
      for _, lane in ipairs(served) do
        local count = math.min(lane.left, lane.most - lane.given, room - #order)
        if count > 0 then
          fetch(lane, lane.given + count)
          count = math.min(count, #lane.line - lane.given)
        end
        for i = 1, count do
          order[#order + 1] = { lane, lane.given + i }
        end
        if count > 0 then
          gave, lane.given, lane.left = true, lane.given + count, lane.left - count
          if lane.left == 0 then
            lane.left, lane.renewed_at = lane.own.weight or 1, #order
          end
        end
      end
    until not gave or #order >= room
    return order
  end

  --- The name of a lane in a member of Q:open.
  function lanes.name_in(member)
    return string.sub(member, 13)
  end

  --- What a claim under this token makes of a lane that gave something: who used up the credit goes to the end of the round, in that order.
  function lanes.take_turn(lane, token)
    lane.credit = lane.left
    if lane.renewed_at > 0 then
      lane.turn, lane.place = token, lane.renewed_at
    end
  end
end
