--- The short way of Renew: one name of its own, still held.
--
-- What is less plain goes on to the rules of renew.lua, with nothing written.
-- @include alone

while #command.names == 1 and command.names[1][1] == "" and command.lease do
  local key, lease_id = command.names[1][2], command.names[1][3]
  local number, lease, floor = read_alone()
  if not number or not lease or lease["until"] <= now or lease.lease_id ~= lease_id then
    break
  end
  lease["until"] = now + command.lease
  local packed = cmsgpack.pack(lease)
  lease.key = key
  local answer = cmsgpack.pack({ leases = { lease } })
  if not keep_answer(answer) then
    break
  end
  save_alone(packed, command.lease, floor)
  return answer
end
