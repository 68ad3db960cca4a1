--- When a message that is put becomes due, and by when it has to be started, if that is said.
-- @include begin

local function moments_of(options)
  local position = now + (options.delay or 0)
  if options.at then
    position = math.min(math.max(position, options.at - wall_offset), LAST - 1)
  end
  return position, options.start_within and math.min(position + options.start_within, LAST)
end
