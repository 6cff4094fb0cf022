/* What every net needs besides its kernels: memory, messages, sums, weights in safetensors files. */

/* NumPy's results to the last bit: no product and sum in one rounding. */
#if defined(__GNUC__) && !defined(__clang__)
#define LCN_EXACT __attribute__((optimize("fp-contract=off")))
#else
#pragma STDC FP_CONTRACT OFF
#define LCN_EXACT
#endif

NET {
    lc_call call;
    char *arena;
    int64_t room;                 /* bytes of the arena */
    char *kept[LCN_KEPT + 1];     /* parameters and states; from the first step on, gradients and history too */
    int64_t iteration;
    double learning_rate, momentum;
    char message[1024];
};

/* -- messages ------------------------------------------------------------------------------------------- */
LC_USED static int lcn_say(NET *net, int code, const char *text)
{
    snprintf(net->message, sizeof net->message, "%s", text);
    return code;
}

/* text with the numbers in place of {0}, {1}, ... */
LC_USED static int lcn_tell(NET *net, int code, const char *where, const char *text, const int64_t *numbers, int count)
{
    size_t at = (size_t)snprintf(net->message, sizeof net->message, "%s%s", where, *where ? ": " : "");
    while (*text && at + 24 < sizeof net->message) {
        if (text[0] == '{' && text[1] >= '0' && text[1] < '0' + count && text[2] == '}') {
            at += (size_t)snprintf(net->message + at, 24, "%lld", (long long)numbers[text[1] - '0']);
            text += 3;
        } else {
            net->message[at++] = *text++;
        }
    }
    net->message[at] = 0;
    return code;
}

LC_USED static int lcn_outside(NET *net, int code, const char *text, int64_t value)
{
    return lcn_tell(net, code, "", text, &value, 1);
}

/* What the status of a kernel means. */
LC_USED static int lcn_failed(NET *net, int status, const lcn_error *errors, const char *where)
{
    if (status == 1) return lcn_tell(net, NET_CODE(MEMORY), where, "out of memory", 0, 0);
    for (; errors->message; errors++)
        if (errors->number == status) return lcn_tell(net, errors->code, where, errors->message, net->call.info, 4);
    return lcn_tell(net, NET_CODE(VALUE), where, "unknown error; please report it", 0, 0);
}

/* -- memory --------------------------------------------------------------------------------------------- */
LC_USED static char *lcn_memory(int64_t bytes)
{
    void *found = 0;
    return posix_memalign(&found, 64, (size_t)(bytes > 0 ? bytes : 64)) ? 0 : found;
}

int64_t NET_FN(arena_size)(int64_t batch, int training)
{
    const int64_t *size = training ? lcn_train_arena : lcn_predict_arena;
    if (batch < 1 || batch > (INT64_MAX / 4 - size[1]) / (size[0] + LCN_WIDEST)) return -1;
    return size[0] * batch + size[1];
}

NET *NET_FN(open)(void)
{
    NET *net = calloc(1, sizeof *net);
    if (!net) return 0;
    net->call.threads = 1;
    net->learning_rate = net->momentum = NAN;
    for (int k = 0; k < LCN_KEPT; k++) {
        if (lcn_kept_trains[k]) continue;
        if (!(net->kept[k] = lcn_memory(lcn_kept_bytes[k]))) {
            NET_FN(close)(net);
            return 0;
        }
        memset(net->kept[k], 0, (size_t)lcn_kept_bytes[k]);
    }
    return net;
}

void NET_FN(close)(NET *net)
{
    if (!net) return;
    for (int k = 0; k < LCN_KEPT; k++) free(net->kept[k]);
    free(net->arena);
    free(net);
}

/* How many parts of a batch are computed at once, and where a part that begins at an example has its arena. */
#define LCN_PART 8 /* examples, at least: threads share the work of fewer layer by layer */
LC_USED static int64_t lcn_parts(const NET *net, int64_t batch)
{
    return batch / LCN_PART >= net->call.threads ? net->call.threads : 1;
}

LC_USED static char *lcn_arena_of(const NET *net, int64_t part, int64_t from)
{
    return net->arena + (lcn_predict_arena[0] * from + 63) / 64 * 64 + part * ((lcn_predict_arena[1] + 127) / 64 * 64);
}

/* Before a call: checks what it was given, and makes room. */
LC_USED static int lcn_begin(NET *net, int64_t batch, const void *const *given, int count, int64_t least, const char *why,
                             int training)
{
    if (!net) return NET_CODE(ARGUMENT);
    for (int k = 0; k < count; k++)
        if (!given[k]) return lcn_say(net, NET_CODE(ARGUMENT), "an array is NULL");
    const int64_t size = NET_FN(arena_size)(batch, training);
    if (size < 0) return lcn_tell(net, NET_CODE(ARGUMENT), "", "there is no batch of {0}", &batch, 1);
    if (batch < least) return lcn_tell(net, NET_CODE(VALUE), "", why, &batch, 1);
    const int64_t rest = training ? 0 : net->call.threads * (lcn_predict_arena[1] + 192); /* of parts */
    if (size + rest > net->room) {
        char *arena = lcn_memory(size + rest);
        if (!arena) return lcn_tell(net, NET_CODE(MEMORY), "", "no memory for a batch of {0}", &batch, 1);
        free(net->arena);
        net->arena = arena;
        net->room = size + rest;
    }
    for (int k = 0; training && k < LCN_KEPT; k++) {
        if (net->kept[k]) continue;
        if (!(net->kept[k] = lcn_memory(lcn_kept_bytes[k]))) return lcn_say(net, NET_CODE(MEMORY), "no memory to train");
        memset(net->kept[k], 0, (size_t)lcn_kept_bytes[k]);
    }
    return NET_CODE(OK);
}

const char *NET_FN(message)(const NET *net) { return net ? net->message : "there is no net"; }
void NET_FN(set_threads)(NET *net, int threads) { net->call.threads = threads > 0 ? threads : 1; }
#if LCN_TRAINS
void NET_FN(set_learning_rate)(NET *net, double rate) { net->learning_rate = rate; }
void NET_FN(set_momentum)(NET *net, double momentum) { net->momentum = momentum; }
int64_t NET_FN(iteration)(const NET *net) { return net->iteration; }
#endif

/* -- numbers -------------------------------------------------------------------------------------------- */

/* The seed of evaluation `count` of a layer: splitmix64. */
LC_USED static int64_t lcn_seed(uint64_t root, uint64_t count)
{
    uint64_t z = root + UINT64_C(0x9E3779B97F4A7C15) * (count + 1);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int64_t)((z ^ (z >> 31)) & INT64_MAX);
}

/* Sums in NumPy's order: pairwise, and in blocks of 8192 where the type is another (Higham, "The accuracy of floating
   point summation", 1993). */
#define LCN_SUM(from, to, FROM, TO)                                                                                    \
    LC_USED LCN_EXACT static TO lcn_pairs_##from##_##to(const FROM *p, int64_t n)                                      \
    {                                                                                                                  \
        if (n > 128) {                                                                                                 \
            int64_t half = n / 2;                                                                                      \
            half -= half % 8;                                                                                          \
            return lcn_pairs_##from##_##to(p, half) + lcn_pairs_##from##_##to(p + half, n - half);                     \
        }                                                                                                              \
        int64_t i = 0;                                                                                                 \
        TO sum = n < 8 ? (TO)-0.0 : 0;                                                                                 \
        if (n >= 8) {                                                                                                  \
            TO r[8];                                                                                                   \
            for (int k = 0; k < 8; k++) r[k] = (TO)p[k];                                                               \
            for (i = 8; i < n - n % 8; i += 8)                                                                         \
                for (int k = 0; k < 8; k++) r[k] += (TO)p[i + k];                                                      \
            sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));                                   \
        }                                                                                                              \
        for (; i < n; i++) sum += (TO)p[i];                                                                            \
        return sum;                                                                                                    \
    }                                                                                                                  \
    LC_USED LCN_EXACT static TO lcn_sum_##from##_##to(const FROM *p, int64_t n)                                        \
    {                                                                                                                  \
        const int64_t block = sizeof(FROM) == sizeof(TO) ? n : 8192;                                                   \
        TO sum = 0;                                                                                                    \
        for (int64_t i = 0; i < n; i += block)                                                                         \
            sum += lcn_pairs_##from##_##to(p + i, n - i < block ? n - i : block);                                      \
        return sum;                                                                                                    \
    }
LCN_SUM(float32, float32, float, float)
LCN_SUM(float32, float64, float, double)
LCN_SUM(float64, float64, double, double)

/* -- weights -------------------------------------------------------------------------------------------- */
enum { LCN_F32, LCN_F64, LCN_I64, LCN_I32, LCN_BOOL };
static const struct { const char *name; int size; } lcn_types[] = {{"F32", 4}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"BOOL", 1}};

int NET_FN(tensors)(const NET *net) { (void)net; return LCN_TENSORS; }

const char *NET_FN(tensor_name)(const NET *net, int k)
{
    (void)net;
    return k >= 0 && k < LCN_TENSORS ? lcn_tensors[k].name : 0;
}

void *NET_FN(tensor_data)(NET *net, int k)
{
    if (k < 0 || k >= LCN_TENSORS) return 0;
    return net->kept[lcn_tensors[k].kept] + lcn_tensors[k].offset * lcn_types[lcn_tensors[k].type].size;
}

/* JSON as far as a safetensors header needs it. `at` is NULL after a mistake. */
typedef struct { const char *at, *end; } lcn_json;

static void lcn_blank(lcn_json *j)
{
    while (j->at && j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at) j->at++;
}

static int lcn_take(lcn_json *j, char c)
{
    lcn_blank(j);
    if (!j->at || j->at >= j->end || *j->at != c) return 0;
    j->at++;
    return 1;
}

static void lcn_need(lcn_json *j, char c)
{
    if (!lcn_take(j, c)) j->at = 0;
}

/* A string, its escapes resolved, cut to `room`. */
static void lcn_string(lcn_json *j, char *out, size_t room)
{
    size_t n = 0;
    lcn_need(j, '"');
    while (j->at && j->at < j->end && *j->at != '"') {
        char c = *j->at++;
        unsigned code = (unsigned char)c;
        if (c == '\\') {
            if (j->at >= j->end) break;
            const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t", *found;
            c = *j->at++;
            if (c == 'u') {
                code = 0;
                for (int k = 0; k < 4 && j->at; k++) {
                    const char *digits = "0123456789abcdef0123456789ABCDEF", *d = 0;
                    if (j->at < j->end && *j->at) d = strchr(digits, *j->at);
                    if (!d) { j->at = 0; return; }
                    code = code * 16 + (unsigned)((d - digits) % 16);
                    j->at++;
                }
                if (code > 0x7f && n + 3 < room) { /* UTF-8; halves of a pair come out as they are */
                    if (code > 0x7ff) out[n++] = (char)(0xe0 | code >> 12);
                    out[n++] = (char)(code > 0x7ff ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
                    code = 0x80 | (code & 0x3f);
                }
                c = (char)code;
            } else if (c && (found = strchr(from, c))) {
                c = to[found - from];
            } else {
                j->at = 0;
                return;
            }
        }
        if (n + 1 < room) out[n++] = c;
    }
    if (room) out[n] = 0;
    if (j->at) lcn_need(j, '"');
}

static int64_t lcn_integer(lcn_json *j)
{
    int64_t n = 0;
    int digits = 0;
    lcn_blank(j);
    while (j->at && j->at < j->end && *j->at >= '0' && *j->at <= '9' && digits < 18) {
        n = 10 * n + (*j->at++ - '0');
        digits++;
    }
    if (!digits) j->at = 0;
    return n;
}

/* Any value, and past it. */
static void lcn_skip(lcn_json *j, int depth)
{
    lcn_blank(j);
    if (!j->at || j->at >= j->end || depth > 32) { j->at = 0; return; }
    const char open = *j->at;
    if (open == '"') {
        lcn_string(j, 0, 0);
    } else if (open == '{' || open == '[') {
        const char close = open == '{' ? '}' : ']';
        j->at++;
        if (lcn_take(j, close)) return;
        do {
            if (open == '{') { lcn_string(j, 0, 0); lcn_need(j, ':'); }
            if (j->at) lcn_skip(j, depth + 1);
        } while (j->at && lcn_take(j, ','));
        lcn_need(j, close);
    } else {
        const char *start = j->at;
        while (j->at < j->end && *j->at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *j->at)) j->at++;
        if (j->at == start) j->at = 0;
    }
}

typedef struct { char name[256], type[8], shape[128]; int64_t begin, end; } lcn_entry;

static int lcn_read_entry(lcn_json *j, lcn_entry *entry)
{
    char key[32];
    int seen = 0;
    lcn_need(j, '{');
    do {
        lcn_string(j, key, sizeof key);
        lcn_need(j, ':');
        if (!j->at) break;
        if (!strcmp(key, "dtype")) {
            lcn_string(j, entry->type, sizeof entry->type);
            seen |= 1;
        } else if (!strcmp(key, "shape")) {
            size_t n = 0;
            entry->shape[0] = 0;
            lcn_need(j, '[');
            if (!lcn_take(j, ']')) {
                do {
                    n += (size_t)snprintf(entry->shape + n, sizeof entry->shape - n, n ? ",%lld" : "%lld", (long long)lcn_integer(j));
                } while (n + 24 < sizeof entry->shape && j->at && lcn_take(j, ','));
                lcn_need(j, ']');
            }
            seen |= 2;
        } else if (!strcmp(key, "data_offsets")) {
            lcn_need(j, '[');
            entry->begin = lcn_integer(j);
            lcn_need(j, ',');
            entry->end = lcn_integer(j);
            lcn_need(j, ']');
            seen |= 4;
        } else {
            lcn_skip(j, 0);
        }
    } while (j->at && lcn_take(j, ','));
    lcn_need(j, '}');
    return j->at && seen == 7;
}

static void lcn_add(char *list, size_t room, const char *name)
{
    const size_t n = strlen(list);
    snprintf(list + n, room - n, n ? ", %s" : "%s", name);
}

static double lcn_number(const char *p, int type)
{
    float f; double d; int64_t l; int32_t i;
    switch (type) {
    case LCN_F32: memcpy(&f, p, 4); return f;
    case LCN_F64: memcpy(&d, p, 8); return d;
    case LCN_I64: memcpy(&l, p, 8); return (double)l;
    case LCN_I32: memcpy(&i, p, 4); return i;
    default: return *p != 0;
    }
}

static void lcn_store(char *p, int type, double value)
{
    const float f = (float)value;
    const int64_t l = type == LCN_I64 ? (int64_t)value : 0;
    const int32_t i = type == LCN_I32 ? (int32_t)value : 0;
    switch (type) {
    case LCN_F32: memcpy(p, &f, 4); break;
    case LCN_F64: memcpy(p, &value, 8); break;
    case LCN_I64: memcpy(p, &l, 8); break;
    case LCN_I32: memcpy(p, &i, 4); break;
    default: *p = value != 0;
    }
}

/* The header of a file in memory, checked against the tensors of the net; where each lies goes to `found`. */
static int lcn_match(NET *net, const char *path, const char *text, int64_t length, int64_t data, lcn_entry *found)
{
    char missing[256] = "", strange[256] = "", other[320] = "", why[512];
    lcn_json j = {text, text + length};
    lcn_need(&j, '{');
    if (!lcn_take(&j, '}')) {
        do {
            lcn_entry entry = {.begin = 0};
            lcn_string(&j, entry.name, sizeof entry.name);
            lcn_need(&j, ':');
            if (j.at && !strcmp(entry.name, "__metadata__")) {
                lcn_skip(&j, 0);
                continue;
            }
            if (!j.at || !lcn_read_entry(&j, &entry)) break;
            if (!strncmp(entry.name, "solver:", 7)) continue; /* a snapshot's history */
            int k = 0, type = 0;
            while (k < LCN_TENSORS && strcmp(lcn_tensors[k].name, entry.name)) k++;
            if (k == LCN_TENSORS) {
                lcn_add(strange, sizeof strange, entry.name);
                continue;
            }
            while (type < 5 && strcmp(lcn_types[type].name, entry.type)) type++;
            if (strcmp(lcn_tensors[k].shape, entry.shape)) {
                snprintf(why, sizeof why, "%s (%s) instead of (%s)", entry.name, entry.shape, lcn_tensors[k].shape);
                lcn_add(other, sizeof other, why);
            } else if (type == 5) {
                snprintf(why, sizeof why, "%s: %s has type %s; F32, F64, I64, I32 and BOOL can be read", path, entry.name, entry.type);
                return lcn_say(net, NET_CODE(WEIGHTS), why);
            } else if (entry.begin < 0 || entry.end > data || entry.end - entry.begin != lcn_tensors[k].count * lcn_types[type].size) {
                snprintf(why, sizeof why, "%s: the data of %s are not all there: the file is damaged", path, entry.name);
                return lcn_say(net, NET_CODE(FILE), why);
            }
            entry.type[0] = (char)(type + 1);
            found[k] = entry;
        } while (j.at && lcn_take(&j, ','));
        lcn_need(&j, '}');
    }
    if (!j.at) {
        snprintf(why, sizeof why, "%s: its header cannot be read: it is no safetensors file, or damaged", path);
        return lcn_say(net, NET_CODE(FILE), why);
    }
    for (int k = 0; k < LCN_TENSORS; k++)
        if (!found[k].type[0]) lcn_add(missing, sizeof missing, lcn_tensors[k].name);
    if (!*missing && !*strange && !*other) return NET_CODE(OK);
    const char *const lists[] = {missing, strange, other}, *const titles[] = {"missing: ", "unexpected: ", "of another shape: "};
    int n = snprintf(net->message, sizeof net->message, "%s does not fit the net: ", path), some = 0;
    for (int k = 0; k < 3; k++)
        if (*lists[k] && n < (int)sizeof net->message)
            n += snprintf(net->message + n, sizeof net->message - (size_t)n, "%s%s%s", some++ ? "; " : "", titles[k], lists[k]);
    return NET_CODE(WEIGHTS);
}

static int lcn_file(NET *net, const char *path, const char *what)
{
    snprintf(net->message, sizeof net->message, "%s: %s", path, what);
    return NET_CODE(FILE);
}

int NET_FN(load_safetensors)(NET *net, const char *path)
{
    int code = NET_CODE(OK);
    char *text = 0;
    lcn_entry *found = calloc(LCN_TENSORS + 1, sizeof *found);
    FILE *file = fopen(path, "rb");
    int64_t size = -1, length = 0;
    if (!file || !found) {
        code = file ? lcn_say(net, NET_CODE(MEMORY), "no memory to read weights") : lcn_file(net, path, strerror(errno));
        goto done;
    }
    if (!fseek(file, 0, SEEK_END)) size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET)) { code = lcn_file(net, path, "cannot be read"); goto done; }
    text = malloc((size_t)size + 1);
    if (!text) { code = lcn_say(net, NET_CODE(MEMORY), "no memory to read weights"); goto done; }
    if (fread(text, 1, (size_t)size, file) != (size_t)size) { code = lcn_file(net, path, "cannot be read"); goto done; }
    if (size >= 8) memcpy(&length, text, 8);
    if (size < 8 || length < 2 || length > size - 8) {
        code = lcn_file(net, path, "it is no safetensors file, or damaged");
        goto done;
    }
    code = lcn_match(net, path, text + 8, length, size - 8 - length, found);
    for (int k = 0; !code && k < LCN_TENSORS; k++) {
        const int from = found[k].type[0] - 1, to = lcn_tensors[k].type;
        const char *source = text + 8 + length + found[k].begin;
        char *target = NET_FN(tensor_data)(net, k);
        if (from == to) {
            memcpy(target, source, (size_t)(lcn_tensors[k].count * lcn_types[to].size));
            continue;
        }
        for (int64_t i = 0; i < lcn_tensors[k].count; i++)
            lcn_store(target + i * lcn_types[to].size, to, lcn_number(source + i * lcn_types[from].size, from));
    }
done:
    if (file) fclose(file);
    free(text);
    free(found);
    return code;
}

/* {"ip1.weight":{"dtype":"F32","shape":[64,10],"data_offsets":[0,2560]}, ...}, to a file or, without one, just its length. */
static int64_t lcn_write_header(FILE *file)
{
    int64_t n = 0, at = 0;
    char piece[512];
    for (int k = 0; k < LCN_TENSORS; k++) {
        const lcn_tensor *t = &lcn_tensors[k];
        const int64_t end = at + t->count * lcn_types[t->type].size;
        n += snprintf(piece, sizeof piece, "%s\"", k ? "," : "{");
        if (file) fputs(piece, file);
        for (const char *c = t->name; *c; c++) {
            n += snprintf(piece, sizeof piece, *c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < 32 ? "\\u%04x" : "%c", *c);
            if (file) fputs(piece, file);
        }
        n += snprintf(piece, sizeof piece, "\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}", lcn_types[t->type].name,
                      t->shape, (long long)at, (long long)end);
        if (file) fputs(piece, file);
        at = end;
    }
    if (file) fputs(LCN_TENSORS ? "}" : "{}", file);
    return n + (LCN_TENSORS ? 1 : 2);
}

int NET_FN(save_safetensors)(NET *net, const char *path)
{
    const size_t room = strlen(path) + 16;
    char *scratch = malloc(room);
    if (!scratch) return lcn_say(net, NET_CODE(MEMORY), "no memory to write weights");
    snprintf(scratch, room, "%s.writing", path); /* beside it, then renamed: whole, or not at all */
    FILE *file = fopen(scratch, "wb");
    int good = file != 0;
    if (good) {
        int64_t length = lcn_write_header(0);
        const int64_t padded = (length + 7) / 8 * 8;
        fwrite(&padded, 8, 1, file);
        lcn_write_header(file);
        for (; length < padded; length++) fputc(' ', file);
        for (int k = 0; k < LCN_TENSORS; k++)
            fwrite(NET_FN(tensor_data)(net, k), (size_t)lcn_types[lcn_tensors[k].type].size, (size_t)lcn_tensors[k].count, file);
        good = !ferror(file);
        if (fclose(file)) good = 0;
        if (good) good = !rename(scratch, path);
    }
    const int code = good ? NET_CODE(OK) : lcn_file(net, path, strerror(errno));
    if (!good && file) remove(scratch);
    free(scratch);
    return code;
}
