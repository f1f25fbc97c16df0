// What a message's figures imply by arithmetic.
#pragma once

#include "doctor/messages/message.h"

namespace headroom::doctor {

// Appends the hints (see Message::hints) that the figures imply.
void add_hints(Message& message);

// Whether two messages say the same: same kind, same figures, same device.
bool same_message(const Message& a, const Message& b);

// Whether the message has the requested bytes and no other figure: a title that repeats how the full message begins.
bool only_requests(const Message& message);
// Whether both report one failure, of which one prints only the requested bytes and the other more.
bool one_is_fuller(const Message& a, const Message& b);
// Whether the first is a title without figures, above the message itself.
bool is_bare_title(const Message& title, const Message& message);
// Gives the fuller one the repeats of the other, and its frames and phase where it has none.
void take_shorter(Message& fuller, Message& shorter);

// Whether `next` continues the failure that `known`, the message before it, reports: another part of the kernel's
// report, or a message without figures soon after one of the same system. If so, `known` takes the fields that it
// lacks.
bool continues(Message& known, const Message& next);

}  // namespace headroom::doctor
