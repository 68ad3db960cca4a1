--- The short way of Renew: one lease, still held.
--
-- What is less plain goes on to the rules of renew.lua, with nothing written.
-- @include one_lease

while #command.names == 1 and command.lease do
  local name = command.names[1]
  local dict, key, id = name[1] ~= "" and name[1] or nil, name[2], LEASE_ID .. pack_text(name[3])
  local number, record, ends_at, floor = read_one(dict, key)
  if not number or not record or ends_at <= now or string.sub(record, -#id) ~= id then
    break
  end
  record = string.sub(record, 1, 38) .. struct.pack(NUMBER, now + command.lease) .. string.sub(record, 47)
  local answer = MAP_OF_1 .. "\166leases\145" .. record
  if not keep_answer(answer) then
    break
  end
  save_one(dict, key, record, command.lease)
  if not dict and (ends_at >= NEVER or not log_outlasts(record, now + command.lease)) then
    keep_log_for(LOG_S + math.ceil(command.lease / 1000000), floor)
  end
  return answer
end
