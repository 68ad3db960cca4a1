--- Going through the messages of one state, in its order.
-- @include line

local PAGE = 500 -- how many members one look at an order takes

--- The place in its order behind which a page goes on: {negated priority, position, n}, {moment, n} or {key, n}.
local function behind(state, cursor)
  if state == "ready" then
    return "(" .. priority_bytes(-cursor[1]) .. sortable(cursor[2]) .. sortable(cursor[3]) .. AFTER_ALL
  elseif state == "buffered" then
    return "(" .. cursor[1] .. "\0" .. sortable(cursor[2]) .. AFTER_ALL
  end
  return "(" .. sortable(cursor[1]) .. sortable(cursor[2]) .. AFTER_ALL
end

--- Whether a filter lets a message through.
local function matches(queue, message, which)
  local labelled = not which.label
  for _, label in ipairs(which.label and message.labels or {}) do
    labelled = labelled or label == which.label
  end
  local since = message.state == "dead" and message.dead_at or message.created_at
  return (not which.older_than or since < now - which.older_than)
    and (not which.error_contains or string.find(message.last_error or "", which.error_contains, 1, true) ~= nil)
    and (not which.key_prefix or (message.key ~= nil and string.sub(message.key, 1, #which.key_prefix) == which.key_prefix))
    and (not which.group or (message.group or "") == which.group)
    and (not which.newer_than or since >= now - which.newer_than)
    and (not which.error_class or string.match(message.last_error or "", "^[^:]*") == which.error_class)
    and (not which.value_contains or string.find(values_of(queue, { message })[1] or "", which.value_contains, 1, true) ~= nil)
    and labelled
end

--- What goes through a queue for the messages that a filter lets through, and looks at no more than so many.
local function walk_of(queue, which)
  return { queue = queue, which = which, left = next(which) and {{LOOKED_AT}} or math.huge }
end

--- Up to `limit` messages of one state that the filter lets through, behind a place in its order; with `answers` no more than the answer
-- takes. And where to go on, if there may be more.
local function browse_state(walk, state, after, limit, answers)
  local queue, found, from, is_over = walk.queue, {}, after and behind(state, after) or "-", false
  local function look(message)
    if matches(queue, message, walk.which) then
      if answers and not bring(message_bytes(queue, message)) then
        is_over = true
        return false
      end
      found[#found + 1] = message
    elseif answers then
      queue.messages[message.id], queue.stored[message.id] = nil, nil
    end
    walk.left, walk.last = walk.left - 1, message
    return #found < limit
  end
  while not is_over and #found < limit and walk.left > 0 do
    -- Without a filter, what is read is found.
    local page = math.min(PAGE, walk.left, next(walk.which) and PAGE or limit - #found)
    local members = call("ZRANGEBYLEX", queue.key .. ":" .. state, from, "+", "LIMIT", 0, page)
    local ids = {}
    for i, member in ipairs(members) do
      ids[i] = id_in(state, member)
    end
    visit_messages(queue, ids, look)
    if #members < page and not is_over then
      return found, #found == limit and place_of(walk.last) or nil
    end
    from = members[1] and "(" .. members[#members]
  end
  if is_over and #found == 0 then
    refuse_answer()
  end
  return found, walk.last and place_of(walk.last)
end
