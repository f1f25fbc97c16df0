// The request of Anthropic's /v1/messages, read as a chat.
#pragma once

#include "serve/text_request.h"

namespace headroom {

// `counts_only`: of /v1/messages/count_tokens, which has no max_tokens. A last message of the assistant is what the
// answer goes on from. Throws ApiError(400).
TextRequest read_message_request(const OrderedJson& body, int64_t vocab, bool counts_only);

}  // namespace headroom
