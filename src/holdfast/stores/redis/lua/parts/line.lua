--- The line of a queue: who is first, what time has overtaken, and when it will do so next.
-- @include queue

--- The first `limit` due messages in claim order, among those that are not too late, but no more than one answer brings.
--
-- Walks the priorities in use from the top: behind the first message of a priority that is not due, none of it is.
local function heads(queue, limit)
  local found, from, size = {}, "-", 0
  while #found < limit do
    local wanted = math.min(limit - #found, CHUNK)
    local members = call("ZRANGEBYLEX", queue.key .. ":ready", from, "+", "LIMIT", 0, wanted)
    local ids = {}
    from = nil
    for i, member in ipairs(members) do
      if struct.unpack(NUMBER, member, POSITION_AT) > now then
        from = "(" .. string.sub(member, 1, 4) .. AFTER_ALL
        break
      end
      ids[i] = id_in("ready", member)
    end
    local is_enough = not visit_messages(queue, ids, function(message)
      if not is_late(message) then
        size = size + message_bytes(queue, message)
        if #found > 0 and size > ANSWER_BYTES then
          return false
        end
        found[#found + 1] = message
      end
    end)
    if is_enough then
      break
    end
    if not from then
      if #members < wanted then
        break
      end
      from = "(" .. members[#members]
    end
  end
  return found
end

--- Ids of the order `leased` or `late` whose moment has come.
local function ids_overdue(queue, order, limit)
  local ids = call("ZRANGEBYLEX", queue.key .. ":" .. order, "-", "(" .. sortable(now + 1), "LIMIT", 0, limit)
  for i, member in ipairs(ids) do
    ids[i] = id_in(order, member)
  end
  return ids
end

--- Since when time has overtaken a message.
local function overdue_since(message)
  if message.state == "leased" then
    return message["until"]
  end
  return message.lane and not message.rank and message.position or message.start_by or 0
end

--- Leased messages whose lease has ended, ready ones that are late and, of a queue with lanes, those that are due and not in line, the
-- longest overdue first.
local function overdue(queue, limit)
  local found = pick(queue, ids_overdue(queue, "leased", limit))
  local others = pick(queue, ids_overdue(queue, "late", limit))
  if (settings_of(queue) or {}).ruled == "lanes" then
    for _, message in ipairs(pick(queue, ids_overdue(queue, "delayed", limit))) do
      if not is_late(message) then
        others[#others + 1] = message
      end
    end
  end
  if #others == 0 then
    return found
  end
  for _, message in ipairs(others) do
    found[#found + 1] = message
  end
  table.sort(found, function(one, other)
    local since, other_since = overdue_since(one), overdue_since(other)
    return since < other_since or (since == other_since and one.n < other.n)
  end)
  for i = #found, limit + 1, -1 do
    found[i] = nil
  end
  return found
end

--- The first member of the ready messages from a bound on, or nil.
local function first_ready(queue, from)
  return call("ZRANGEBYLEX", queue.key .. ":ready", from, "+", "LIMIT", 0, 1)[1]
end

--- Where the line of one priority begins, nil where nobody stands in it.
local function head_position(queue, priority)
  local prefix = priority_bytes(priority)
  local member = first_ready(queue, "[" .. prefix)
  return member and string.sub(member, 1, 4) == prefix and struct.unpack(NUMBER, member, POSITION_AT) or nil
end

--- Call `visit` with the four bytes of each priority in use and the position where its line begins.
local function each_priority(queue, visit)
  local member = first_ready(queue, "-")
  while member do
    local prefix, position = string.sub(member, 1, 4), struct.unpack(NUMBER, member, POSITION_AT)
    visit(prefix, position)
    member = first_ready(queue, "(" .. prefix .. AFTER_ALL)
  end
end

--- The first moment after now in the order `leased` or `delayed`.
local function first_moment(queue, order)
  local member = call("ZRANGEBYLEX", queue.key .. ":" .. order, "[" .. sortable(now + 1), "+", "LIMIT", 0, 1)[1]
  return member and (struct.unpack(NUMBER, member)) or NEVER
end

--- The first moment after now at which a message becomes due or a lease ends, nil for none.
local function next_due(queue)
  local due = first_moment(queue, "leased")
  if (settings_of(queue) or {}).ruled == "lanes" then
    due = math.min(due, first_moment(queue, "delayed"))
    return due < NEVER and due or nil
  end
  each_priority(queue, function(prefix)
    local ahead = first_ready(queue, "[" .. prefix .. sortable(now + 1))
    if ahead and string.sub(ahead, 1, 4) == prefix then
      due = math.min(due, (struct.unpack(NUMBER, ahead, POSITION_AT)))
    end
  end)
  return due < NEVER and due or nil
end
