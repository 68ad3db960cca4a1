--- Where a message stands among the ready, before its id: see messages.lua.
-- @include begin

local function ready_place(message)
  return struct.pack(READY, TOP - (message.priority or 0), message.position, message.n)
end
