--- What fast settle makes of messages that go back.
-- @include message_record
-- @include ending
-- @include ready_place

--- The message in what is known of it; one whose first claim this is, is joined with how it was put.
local function whole_message(messages, id, packed)
  local message = cmsgpack.unpack(packed)
  if is_first_claim(packed) then
    local claim = message
    message = cmsgpack.unpack(call("HGET", messages, id))
    for field, content in pairs(claim) do
      message[field] = content
    end
    message.value = nil
  end
  return message
end

--- What is kept of messages that go back, and their members among the ready; nothing where the budget of one is spent.
local function plan_return(messages, ids, found)
  local kept, ready, counts = {}, {}, command.counts
  for i = 1, #ids do
    local message = whole_message(messages, ids[i], found[i])
    if counts and is_spent(message, (message.failures or 0) + 1, command, {}) then
      return nil
    end
    local ending = ending_of(message, now, counts and "failed" or "released", command.error)
    message.state, message.position = nil, position_behind(message, command.return_to, now, command.delay or 0)
    remember(message, ending, counts)
    kept[2 * i - 1], kept[2 * i] = ids[i] .. "\0", cmsgpack.pack(message)
    ready[2 * i - 1], ready[2 * i] = "0", ready_place(message) .. ids[i] .. "\0"
  end
  return kept, ready
end
