// Reads a request of Anthropic's /v1/messages as a chat.
#pragma once

#include "serve/text_request.h"

namespace headroom {

// `counts_only`: for /v1/messages/count_tokens, which has no max_tokens. If the last message is the assistant's, the
// answer continues it. Throws ApiError(400).
TextRequest read_message_request(const OrderedJson& body, int64_t vocab, bool counts_only);

}  // namespace headroom
