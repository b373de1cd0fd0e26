#include "core/event_codec.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "core/event_fields.h"
#include "core/testing.h"
#include "tests/model/random_requests.h"

namespace baton::core {
namespace {

using model::Random;

const Bytes kBlob = Blob("bytes").bytes();

stream::Uuid a_uuid(std::uint8_t last) {
  stream::Uuid uuid;
  uuid.bytes[0] = std::byte{0x01}, uuid.bytes[15] = std::byte{last};
  return uuid;
}

WorkBatchApplied a_batch(const BlobView& blob) {
  WorkBatchApplied batch{.ns = "ns", .instance = {a_uuid(1)}};
  batch.heard = {.joins = true, .service = "orders", .host = "host", .process = 42, .metadata = "{}"};
  batch.reports = {{.message = 300, .how = Reported::done, .status = 5},
                   {.message = 301,
                    .how = Reported::retried,
                    .status = 32769,
                    .reason = 99,
                    .policy = stream::FailurePolicy::park,
                    .due = kStart,
                    .error = blob}};
  batch.receptors = {{.event = {a_uuid(2)},
                      .receptor = "mail",
                      .status = stream::ReceptorStatus::failed,
                      .attempts = 3,
                      .error = "no"}};
  batch.checkpoints = {{.stream = {a_uuid(3)},
                        .perspective = "totals",
                        .status = stream::PerspectiveStatus::completed,
                        .error = "",
                        .version = 300,
                        .ahead = {302, 303}}};
  batch.renewals = {{.stream = 7, .until = kStart}};
  batch.opened = {{.id = {a_uuid(3)}, .lane = stream::Lane::inbox, .partition = 1211}};
  batch.stored = {{.id = {a_uuid(4)},
                   .lane = stream::Lane::inbox,
                   .stream = 8,
                   .data_bytes = 3,
                   .appends_event = true,
                   .is_event = true,
                   .policy = stream::FailurePolicy::park_stream,
                   .body = blob}};
  batch.lease_until = kStart;
  batch.claims = {{.stream = 8, .given_seq = 300, .count = 2}};
  return batch;
}

// One of each type; the golden file has their bytes.
std::vector<Event> examples() {
  const BlobView blob{kBlob, 0x1122334455667788};
  return {
      TaskCreated{.ns = "ns",
                  .queue = "queue",
                  .capabilities = "disk gpu",
                  .key = "key",
                  .content = 77,
                  .priority = 9,
                  .eligible_at = kStart,
                  .retry = {.max_failures = 6},
                  .max_attempts = 20,
                  .max_hold = seconds(300),
                  .retry_of = {7, 300},
                  .payload_of_old = {.lsn = 299, .hash = 0x0102030405060708, .offset = 4096, .length = 130},
                  .payload = blob},
      LeaseGranted{.task = 300, .attempt = 2, .expiry = kStart, .worker = "worker"},
      LeaseExtended{.task = 300, .lease = 301, .expiry = kStart},
      LeasesExtended{
          {{.task = 300, .lease = 301, .expiry = kStart}, {.task = 1, .lease = 2, .expiry = {-3}}}},
      LeaseExpired{.task = 300, .lease = 301},
      TaskCompleted{.task = 300, .lease = 301, .result = blob},
      TaskCancelled{.task = 300, .lease = 301},
      TaskFailed{.task = 300,
                 .lease = 301,
                 .outcome = Ended::retried,
                 .failures = 2,
                 .retry_at = kStart,
                 .reason = blob},
      TaskDead{.task = 300, .why = DeadReason::cancelled, .actor = "actor", .note = blob},
      TasksPurged{{300, 1, 1'000'000}},
      QueuePaused{"ns", "queue"},
      QueueResumed{"ns", "queue"},
      BlobMoved{.task = 300, .part = BlobPart::note, .lease = 301, .blob = blob},
      a_batch(blob),
      InstancesEvicted{{300, 301}},
      InstanceLeft{300},
      LettersReplayed{{1, 300}},
      LettersPurged{{1, 300}},
      StreamsForgotten{.seen = 1,
                       .tombstones = 2,
                       .events = 3,
                       .receptors = 4,
                       .checkpoints = 5,
                       .kept = 6,
                       .idle = {7, 300}},
      MessageBlobMoved{.number = 300, .is_letter = true, .part = MessagePart::error, .blob = blob},
      EpochStarted{.key = kKey},
      StateDigest{0xdeadbeefcafef00d},
      SnapshotTaken{.lsn = 300, .digest = 0xdeadbeefcafef00d},
      Sealed{},
  };
}

Bytes encoded(const Event& event) {
  Bytes bytes;
  encode(event, bytes);
  return bytes;
}
Result<Event> decoded(EventType type, ByteView bytes) {
  return decode(static_cast<std::uint16_t>(type), bytes);
}

std::string hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) / 16];
    text += kDigits[static_cast<unsigned>(byte) % 16];
  }
  return text;
}

// The layout is for ever. To add a type: BATON_UPDATE_GOLDEN=1 writes the file anew.
TEST(Events, HaveTheBytesOfTheGoldenFile) {
  const std::string path = BATON_SOURCE_DIR "/tests/golden/events.txt";
  std::ostringstream wanted;
  wanted << "# type, name and body of one event of each type\n";
  for (const Event& event : examples()) {
    wanted << static_cast<unsigned>(type_of(event)) << ' ' << name_of(type_of(event)) << ' '
           << (encoded(event).empty() ? "-" : hex(encoded(event))) << '\n';
  }
  if (std::getenv("BATON_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << wanted.str();
  std::ostringstream found;
  found << std::ifstream(path).rdbuf();
  EXPECT_EQ(found.str(), wanted.str());
}

// Logs from before inboxes remembered what came back have to come to the same as ever.
TEST(Events, ThatHaveLearntSomethingCanStillBeReadWithoutIt) {  // T26
  const Bytes before = encoded(LettersReplayed{.letters = {1, 300}});
  const Bytes now = encoded(LettersReplayed{.letters = {1, 300}, .remembers = true});
  EXPECT_EQ(hex(now), hex(before) + "01");
  const auto remembers = [](ByteView bytes) {
    return std::get<LettersReplayed>(decoded(EventType::letters_replayed, bytes).value()).remembers;
  };
  EXPECT_TRUE(remembers(now));
  EXPECT_FALSE(remembers(before));
  Bytes other = before;
  other.push_back(std::byte{0});
  EXPECT_FALSE(decoded(EventType::letters_replayed, other));
}

TEST(Events, AreAllAmongTheExamples) {
  const auto all = examples();
  ASSERT_EQ(all.size(), std::variant_size_v<Event>);
  for (std::size_t index = 0; index < all.size(); ++index) EXPECT_EQ(all[index].index(), index);
}

// What decodes is the one encoding of something, so damage shows or changes the meaning visibly.
void expect_nothing_or_itself(EventType type, ByteView bytes) {
  const auto event = decoded(type, bytes);
  if (event) {
    EXPECT_EQ(hex(encoded(*event)), hex(bytes)) << name_of(type);
  } else {
    EXPECT_EQ(event.error().code, Errc::corrupt);
  }
}

// An entry that is cut decodes to nothing, unless only its blob is shorter, which the log's own checksum
// tells.
TEST(Events, DecodeWholeOrNotAtAll) {
  for (const Event& event : examples()) {
    const Bytes bytes = encoded(event);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
      expect_nothing_or_itself(type_of(event), ByteView(bytes).first(length));
    }
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    expect_nothing_or_itself(type_of(event), longer);
  }
}

TEST(Events, HaveOneEncodingEach) {
  for (const Event& event : examples()) {
    Bytes bytes = encoded(event);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const std::byte good = bytes[at];
      for (unsigned value = 0; value < 256; ++value) {
        bytes[at] = static_cast<std::byte>(value);
        expect_nothing_or_itself(type_of(event), bytes);
      }
      bytes[at] = good;
    }
  }
}

// T7: what the vocabulary does not have cannot be read.
TEST(Events, OfUnknownTypesAreRefused) {
  for (std::uint32_t type = 0; type <= UINT16_MAX; ++type) {
    const bool known = std::ranges::any_of(
        examples(), [&](const Event& event) { return static_cast<std::uint16_t>(type_of(event)) == type; });
    if (known) continue;
    const auto event = decode(static_cast<std::uint16_t>(type), {});
    ASSERT_FALSE(event.has_value());
    ASSERT_EQ(event.error().code, Errc::unsupported_version);
    type += type > 0x200 ? 97 : 0;
  }
}

// X3
TEST(Events, WithTooManyItemsAreRefused) {
  const auto decodes = [](const Event& event) { return decoded(type_of(event), encoded(event)).has_value(); };
  EXPECT_TRUE(decodes(TasksPurged{std::vector<Lsn>(kPurgeItemsMax)}));
  EXPECT_FALSE(decodes(TasksPurged{std::vector<Lsn>(kPurgeItemsMax + 1)}));
  EXPECT_TRUE(decodes(LeasesExtended{std::vector<LeaseExtended>(kExtendItemsMax)}));
  EXPECT_FALSE(decodes(LeasesExtended{std::vector<LeaseExtended>(kExtendItemsMax + 1)}));
}

template <class Enum>
class WordsOfTheLog : public testing::Test {};
using Enumerations = testing::Types<Ended, BlobPart, DeadReason, Reported, MessagePart, stream::Lane,
                                    stream::FailurePolicy, stream::ReceptorStatus, stream::PerspectiveStatus>;
TYPED_TEST_SUITE(WordsOfTheLog, Enumerations);

void write(auto word, Bytes& into) { FieldWriter{ByteWriter(into)}(word); }

// T7: what can be written can be read again, and what cannot be read is refused by the writer too: an entry
// that nobody can read would be the end of the log.
TYPED_TEST(WordsOfTheLog, AreReadIfAndOnlyIfTheyAreWritten) {
  int known = 0;
  for (int number = 0; number < 256; ++number) {
    const Bytes bytes{static_cast<std::byte>(number)};
    ByteReader in(bytes);
    TypeParam word{};
    FieldReader{in}(word);
    ASSERT_EQ(in.finished(), is_recordable(static_cast<TypeParam>(number))) << number;
    if (!in.finished()) continue;
    ++known;
    Bytes written;
    write(word, written);
    EXPECT_EQ(written, bytes);
  }
  EXPECT_GE(known, 2);
  Bytes nowhere;
  for (const int beyond : {-1, static_cast<int>(last_of(TypeParam{})) + 1})
    EXPECT_DEATH(write(static_cast<TypeParam>(beyond), nowhere), "is_recordable");
}

TEST(Events, SayTheUsualRetryPolicyInOneWayOnly) {
  TaskCreated created{.ns = "n", .queue = "q", .retry = {.max_failures = 6}, .max_attempts = 1};
  Bytes bytes = encoded(created);
  std::size_t refused = 0;
  for (std::byte& byte : bytes) {  // somewhere in there is the 6
    if (byte != std::byte{6}) continue;
    byte = std::byte{5};
    refused += !decoded(EventType::task_created, bytes).has_value();
    byte = std::byte{6};
  }
  EXPECT_EQ(refused, 1u);
}

// Something of every type, with numbers of all sizes.
Event random_event(Random& random, std::vector<std::string>& texts, Bytes& bytes) {
  const auto number = [&] { return random.next() >> random.below(64); };
  const auto narrow = [&] { return static_cast<std::uint32_t>(number()); };
  const auto instant = [&] {
    return Instant{static_cast<std::int64_t>(number() ^ (random.one_in(2) ? 0 : ~0ull))};
  };
  const auto duration = [&] { return instant() - Instant{}; };
  const auto text = [&] {
    std::string& one = texts.emplace_back(random.below(40), 'x');
    for (char& c : one) c = static_cast<char>(random.next());
    return std::string_view(one);
  };
  bytes.resize(random.below(300));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  const BlobView blob{bytes, random.next()};
  const auto extended = [&] { return LeaseExtended{number(), number(), instant()}; };
  Event event = examples()[random.below(std::variant_size_v<Event>)];
  std::visit(
      [&]<class Fact>(Fact& fact) {
        if constexpr (std::same_as<Fact, TaskCreated>) {
          fact = {.ns = text(),
                  .queue = text(),
                  .capabilities = text(),
                  .key = text(),
                  .content = number(),
                  .priority = static_cast<std::uint8_t>(number()),
                  .eligible_at = instant(),
                  .max_attempts = narrow(),
                  .max_hold = duration(),
                  .retry_of = {narrow(), number()},
                  .payload = blob};
          if (random.one_in(2)) fact.retry = {narrow(), duration(), narrow(), duration(), narrow()};
          if (random.one_in(2)) fact.payload_of_old = {number(), random.next(), narrow(), narrow() | 1};
        }
        if constexpr (std::same_as<Fact, LeaseGranted>) fact = {number(), narrow(), instant(), text()};
        if constexpr (std::same_as<Fact, LeaseExtended>) fact = extended();
        if constexpr (std::same_as<Fact, LeasesExtended>) {
          fact.items.resize(random.below(9));
          for (auto& item : fact.items) item = extended();
        }
        if constexpr (std::same_as<Fact, LeaseExpired>) fact = {number(), number()};
        if constexpr (std::same_as<Fact, TaskCompleted>) fact = {number(), number(), blob};
        if constexpr (std::same_as<Fact, TaskCancelled>) fact = {number(), number()};
        if constexpr (std::same_as<Fact, TaskFailed>)
          fact = {number(), number(), Ended(random.below(6)), narrow(), instant(), blob};
        if constexpr (std::same_as<Fact, TaskDead>)
          fact = {number(), DeadReason(random.below(3)), text(), blob};
        if constexpr (std::same_as<Fact, TasksPurged>) {
          fact.tasks.resize(random.below(9));
          for (auto& task : fact.tasks) task = number();
        }
        if constexpr (std::same_as<Fact, QueuePaused>) fact = {text(), text()};
        if constexpr (std::same_as<Fact, QueueResumed>) fact = {text(), text()};
        if constexpr (std::same_as<Fact, BlobMoved>)
          fact = {number(), BlobPart(random.below(2)), number(), blob};
        if constexpr (std::same_as<Fact, EpochStarted>) fact = {{random.next(), random.next()}};
        if constexpr (std::same_as<Fact, StateDigest>) fact = {number()};
        if constexpr (std::same_as<Fact, SnapshotTaken>) fact = {number(), number()};
      },
      event);
  return event;
}

// Every field differs from the next one's and from its default, so bytes that agree mean fields that agree.
TEST(Events, ReadBackWhateverTheyCarry) {
  Random random(1);
  for (int i = 0; i < 50'000; ++i) {
    std::vector<std::string> texts;
    texts.reserve(8);  // they are borrowed from
    Bytes blob;
    const Event event = random_event(random, texts, blob);
    const Bytes bytes = encoded(event);
    const auto read = decoded(type_of(event), bytes);
    ASSERT_TRUE(read.has_value()) << name_of(type_of(event)) << ' ' << hex(bytes);
    ASSERT_EQ(read->index(), event.index());
    ASSERT_EQ(hex(encoded(*read)), hex(bytes));
  }
}

// Field by field, so that two fields swapped on both sides are not taken for the right ones.
TEST(Events, ReadBackEachFieldAsItself) {
  const auto all = examples();
  const Bytes bytes = encoded(all[0]);
  const auto read = decoded(EventType::task_created, bytes);
  const auto& want = std::get<TaskCreated>(all[0]);
  const auto& got = std::get<TaskCreated>(*read);
  EXPECT_EQ(got.ns, want.ns);
  EXPECT_EQ(got.queue, want.queue);
  EXPECT_EQ(got.capabilities, want.capabilities);
  EXPECT_EQ(got.key, want.key);
  EXPECT_EQ(got.content, want.content);
  EXPECT_EQ(got.priority, want.priority);
  EXPECT_EQ(got.eligible_at, want.eligible_at);
  EXPECT_EQ(got.retry, want.retry);
  EXPECT_EQ(got.max_attempts, want.max_attempts);
  EXPECT_EQ(got.max_hold, want.max_hold);
  EXPECT_EQ(got.retry_of, want.retry_of);
  EXPECT_EQ(got.payload_of_old, want.payload_of_old);
  EXPECT_EQ(got.payload.hash, want.payload.hash);
  EXPECT_EQ(hex(got.payload.bytes), hex(want.payload.bytes));
  const Bytes failure_bytes = encoded(all[7]);
  const auto failure_read = decoded(EventType::task_failed, failure_bytes);
  const auto& failed = std::get<TaskFailed>(*failure_read);
  EXPECT_EQ(failed.task, 300u);
  EXPECT_EQ(failed.lease, 301u);
  EXPECT_EQ(failed.outcome, Ended::retried);
  EXPECT_EQ(failed.failures, 2u);
  EXPECT_EQ(failed.retry_at, kStart);
}

}  // namespace
}  // namespace baton::core
