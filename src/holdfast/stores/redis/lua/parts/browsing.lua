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

--- Up to `limit` messages of one state that the filter lets through, behind a place in its order; with `answers` no more than the answer
-- takes, and whether that were not all.
local function browse_state(queue, state, which, after, limit, answers)
  local found, from = {}, after and behind(state, after) or "-"
  while #found < limit do
    -- What a filter lets through may be far behind; without one, what is read is found.
    local page = next(which) and PAGE or math.min(PAGE, limit - #found)
    local members = call("ZRANGEBYLEX", queue.key .. ":" .. state, from, "+", "LIMIT", 0, page)
    local ids = {}
    for i, member in ipairs(members) do
      ids[i] = id_in(state, member)
    end
    local is_enough = not visit_messages(queue, ids, function(message)
      if #found < limit and matches(queue, message, which) then
        if answers and not bring(message_bytes(queue, message)) then
          return false
        end
        found[#found + 1] = message
      elseif answers then
        queue.messages[message.id], queue.stored[message.id] = nil, nil
      end
    end)
    if is_enough then
      if #found == 0 then
        refuse_answer()
      end
      return found, true
    end
    if #members < page then
      break
    end
    from = "(" .. members[#members]
  end
  return found, false
end
