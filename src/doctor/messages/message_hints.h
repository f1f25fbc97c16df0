// What follows from a message's figures by arithmetic alone.
#pragma once

#include "doctor/messages/message.h"

namespace headroom::doctor {

// Appends the hints (see Message::hints) that the figures imply.
void add_hints(Message& message);

// The messages tell the same: same kind, same figures, same device.
bool same_message(const Message& a, const Message& b);

// `next` says more of the failure that `known`, the message before it, tells: the kernel's report in several parts, or
// a message without figures soon after one of the same system. Then `known` takes over what it lacks.
bool continues(Message& known, const Message& next);

}  // namespace headroom::doctor
