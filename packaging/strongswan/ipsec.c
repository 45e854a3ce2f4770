#include "ipsec.h"

#include "gateway.h"

#include <daemon.h>
#include <threading/mutex.h>

#include <netinet/in.h>

struct ipsec {
	kernel_ipsec_t public;
	/* Of the lists. */
	mutex_t *lock;
	/* What the gateway was told, for a new one: struct keyway_sa of the inbound SAs, struct keyway_policy. */
	linked_list_t *inbound;
	linked_list_t *policies;
};

/* While there is a kernel interface. */
static struct ipsec *ipsec;

static struct keyway_sa sa_of_id(kernel_ipsec_sa_id_t *id)
{
	struct keyway_sa sa = { .spi = id->spi };

	address_of_host(&sa.source, id->src);
	address_of_host(&sa.destination, id->dst);
	return sa;
}

static bool is_sa(const struct keyway_sa *a, const struct keyway_sa *b)
{
	return a->spi == b->spi && memeq(&a->destination, &b->destination, sizeof(a->destination));
}

static void forget_sa(struct ipsec *this, const struct keyway_sa *sa)
{
	struct keyway_sa *current;
	enumerator_t *all;

	this->lock->lock(this->lock);
	all = this->inbound->create_enumerator(this->inbound);
	while (all->enumerate(all, &current))
	{
		if (is_sa(current, sa))
		{
			this->inbound->remove_at(this->inbound, all);
			free(current);
		}
	}
	all->destroy(all);
	this->lock->unlock(this->lock);
}

static void remember_sa(struct ipsec *this, const struct keyway_sa *sa)
{
	struct keyway_sa *copy;

	INIT(copy);
	*copy = *sa;
	this->lock->lock(this->lock);
	this->inbound->insert_last(this->inbound, copy);
	this->lock->unlock(this->lock);
}

METHOD(kernel_ipsec_t, get_features, kernel_feature_t, struct ipsec *this)
{
	kernel_feature_t features = KERNEL_NO_POLICY_UPDATES | KERNEL_POLICY_SPI;

	if (gateway_describe().flags & KEYWAY_UDP_ONLY)
	{
		features |= KERNEL_REQUIRE_UDP_ENCAPSULATION;
	}
	return features;
}

METHOD(kernel_ipsec_t, get_spi, status_t, struct ipsec *this, host_t *src, host_t *dst, uint8_t protocol, uint32_t *spi)
{
	struct keyway_sa request = {};
	struct keyway_spi answer;
	status_t status;

	if (protocol != IPPROTO_ESP)
	{
		return NOT_SUPPORTED;
	}
	address_of_host(&request.source, src);
	address_of_host(&request.destination, dst);
	status = gateway_request("an SPI", KEYWAY_GET_SPI, &request.header, sizeof(request), &answer.header, sizeof(answer));
	if (status == SUCCESS)
	{
		*spi = answer.spi;
	}
	return status;
}

METHOD(kernel_ipsec_t, get_cpi, status_t, struct ipsec *this, host_t *src, host_t *dst, uint16_t *cpi)
{
	return NOT_SUPPORTED;
}

/* What we cannot do for an SA, or NULL. */
static char *obstacle(kernel_ipsec_sa_id_t *id, kernel_ipsec_add_sa_t *data)
{
	if (id->proto != IPPROTO_ESP)
	{
		return "AH";
	}
	if (data->mode != MODE_TUNNEL && data->mode != MODE_TRANSPORT)
	{
		return "a mode other than tunnel and transport";
	}
	if (data->ipcomp != IPCOMP_NONE)
	{
		return "compression (ipcomp)";
	}
	if (id->mark.mask || data->mark.mask || id->if_id)
	{
		return "marks and interface ids";
	}
	if (data->label)
	{
		return "security labels";
	}
	return NULL;
}

METHOD(kernel_ipsec_t, add_sa, status_t, struct ipsec *this, kernel_ipsec_sa_id_t *id, kernel_ipsec_add_sa_t *data)
{
	struct {
		struct keyway_add_sa sa;
		struct keyway_selector selectors[KEYWAY_SELECTORS_MAX];
	} request = {};
	struct keyway_add_sa *sa = &request.sa;
	struct keyway_sa name = sa_of_id(id);
	struct keyway_header answer;
	traffic_selector_t *source, *destination;
	enumerator_t *sources, *destinations;
	char *why = obstacle(id, data);
	uint8_t count = 0;
	size_t length;
	status_t status;

	if (data->enc_key.len > sizeof(sa->encryption_key) || data->int_key.len > sizeof(sa->integrity_key))
	{
		why = "keys of this length";
	}
	sources = data->src_ts->create_enumerator(data->src_ts);
	while (sources->enumerate(sources, &source))
	{
		destinations = data->dst_ts->create_enumerator(data->dst_ts);
		while (destinations->enumerate(destinations, &destination))
		{
			if (count == KEYWAY_SELECTORS_MAX)
			{
				why = "so many traffic selectors";
				break;
			}
			count += selector_of_traffic(&request.selectors[count], source, destination);
		}
		destinations->destroy(destinations);
	}
	sources->destroy(sources);
	if (why)
	{
		DBG1(DBG_KNL, "the gateway does not know %s", why);
		return NOT_SUPPORTED;
	}
	*sa = (struct keyway_add_sa){
		.spi = id->spi,
		.source = name.source,
		.destination = name.destination,
		.reqid = htonl(data->reqid),
		.seconds = { htobe64(data->lifetime->time.rekey), htobe64(data->lifetime->time.life) },
		.bytes = { htobe64(data->lifetime->bytes.rekey), htobe64(data->lifetime->bytes.life) },
		.packets = { htobe64(data->lifetime->packets.rekey), htobe64(data->lifetime->packets.life) },
		.window = htonl(data->replay_window),
		.encryption = htons(data->enc_alg),
		.integrity = htons(data->int_alg == AUTH_UNDEFINED ? 0 : data->int_alg),
		.mode = data->mode == MODE_TRANSPORT ? 1 : 2,
		.inbound = data->inbound,
		.esn = data->esn,
		.encapsulated = data->encap,
		.encryption_bytes = data->enc_key.len,
		.integrity_bytes = data->int_key.len,
		.selectors = count,
	};
	memcpy(sa->encryption_key, data->enc_key.ptr, data->enc_key.len);
	memcpy(sa->integrity_key, data->int_key.ptr, data->int_key.len);
	length = sizeof(*sa) + count * sizeof(request.selectors[0]);
	status = gateway_request(data->inbound ? "an inbound SA" : "an outbound SA", KEYWAY_ADD_SA, &sa->header, length,
							 &answer, sizeof(answer));
	if (status == SUCCESS && data->inbound)
	{
		remember_sa(this, &name);
	}
	return status;
}

METHOD(kernel_ipsec_t, update_sa, status_t, struct ipsec *this, kernel_ipsec_sa_id_t *id, kernel_ipsec_update_sa_t *data)
{
	struct keyway_sa name = sa_of_id(id), renamed = name;
	struct keyway_update_sa request = {
		.spi = name.spi,
		.source = name.source,
		.destination = name.destination,
		.encapsulated = data->new_encap,
	};
	struct keyway_header answer;
	struct keyway_sa *current;
	enumerator_t *all;
	status_t status;

	if (data->cpi)
	{
		return NOT_SUPPORTED;
	}
	address_of_host(&request.new_source, data->new_src);
	address_of_host(&request.new_destination, data->new_dst);
	renamed.source = request.new_source;
	renamed.destination = request.new_destination;
	status = gateway_request("addresses of an SA", KEYWAY_UPDATE_SA, &request.header, sizeof(request), &answer,
							 sizeof(answer));
	if (status == SUCCESS)
	{
		this->lock->lock(this->lock);
		all = this->inbound->create_enumerator(this->inbound);
		while (all->enumerate(all, &current))
		{
			if (is_sa(current, &name))
			{
				*current = renamed;
			}
		}
		all->destroy(all);
		this->lock->unlock(this->lock);
	}
	return status;
}

METHOD(kernel_ipsec_t, query_sa, status_t, struct ipsec *this, kernel_ipsec_sa_id_t *id, kernel_ipsec_query_sa_t *data,
	   uint64_t *bytes, uint64_t *packets, time_t *time)
{
	struct keyway_sa request = sa_of_id(id);
	struct keyway_use use;
	uint64_t idle;
	status_t status;

	status = gateway_request("use of an SA", KEYWAY_QUERY_SA, &request.header, sizeof(request), &use.header, sizeof(use));
	if (status != SUCCESS)
	{
		return status;
	}
	if (bytes)
	{
		*bytes = be64toh(use.bytes);
	}
	if (packets)
	{
		*packets = be64toh(use.packets);
	}
	idle = be64toh(use.idle);
	if (time)
	{
		*time = idle == UINT64_MAX ? 0 : time_monotonic(NULL) - (time_t)idle;
	}
	return SUCCESS;
}

METHOD(kernel_ipsec_t, del_sa, status_t, struct ipsec *this, kernel_ipsec_sa_id_t *id, kernel_ipsec_del_sa_t *data)
{
	struct keyway_sa request = sa_of_id(id);
	struct keyway_header answer;

	forget_sa(this, &request);
	return gateway_request("deletion of an SA", KEYWAY_DELETE_SA, &request.header, sizeof(request), &answer,
						   sizeof(answer));
}

METHOD(kernel_ipsec_t, flush_sas, status_t, struct ipsec *this)
{
	struct keyway_header request = {}, answer;
	struct keyway_sa *sa;

	this->lock->lock(this->lock);
	while (this->inbound->remove_first(this->inbound, (void **)&sa) == SUCCESS)
	{
		free(sa);
	}
	this->lock->unlock(this->lock);
	return gateway_request("deletion of all SAs", KEYWAY_FLUSH_SAS, &request, sizeof(request), &answer, sizeof(answer));
}

/* FALSE where the gateway does not need the policy, or cannot have it. */
static bool policy_of(struct keyway_policy *policy, kernel_ipsec_policy_id_t *id, kernel_ipsec_manage_policy_t *data)
{
	*policy = (struct keyway_policy){
		.action = data->type == POLICY_PASS ? KEYWAY_PASS : data->type == POLICY_DROP ? KEYWAY_DROP : KEYWAY_PROTECT,
		.priority = data->prio,
		.reqid = htonl(data->sa ? data->sa->reqid : 0),
		.spi = data->sa ? data->sa->esp.spi : 0,
	};
	address_of_host(&policy->source, data->src);
	address_of_host(&policy->destination, data->dst);
	return selector_of_traffic(&policy->selector, id->src_ts, id->dst_ts);
}

METHOD(kernel_ipsec_t, add_policy, status_t, struct ipsec *this, kernel_ipsec_policy_id_t *id,
	   kernel_ipsec_manage_policy_t *data)
{
	struct keyway_policy request, *copy;
	struct keyway_header answer;
	status_t status;

	/* An inbound SA has its selectors, and what comes out of it is the system's to route. */
	if (id->dir != POLICY_OUT)
	{
		return SUCCESS;
	}
	if (id->mark.mask || id->if_id || id->interface || id->label)
	{
		DBG1(DBG_KNL, "the gateway's policies have no marks, interfaces or security labels");
		return NOT_SUPPORTED;
	}
	if (!policy_of(&request, id, data))
	{
		return FAILED;
	}
	INIT(copy);
	*copy = request;
	status = gateway_request("a policy", KEYWAY_ADD_POLICY, &request.header, sizeof(request), &answer, sizeof(answer));
	if (status != SUCCESS)
	{
		free(copy);
		return status;
	}
	this->lock->lock(this->lock);
	this->policies->insert_last(this->policies, copy);
	this->lock->unlock(this->lock);
	return SUCCESS;
}

METHOD(kernel_ipsec_t, query_policy, status_t, struct ipsec *this, kernel_ipsec_policy_id_t *id,
	   kernel_ipsec_query_policy_t *data, time_t *use_time)
{
	return NOT_SUPPORTED;
}

METHOD(kernel_ipsec_t, del_policy, status_t, struct ipsec *this, kernel_ipsec_policy_id_t *id,
	   kernel_ipsec_manage_policy_t *data)
{
	struct keyway_policy request, *current;
	struct keyway_header answer;
	enumerator_t *all;

	if (id->dir != POLICY_OUT)
	{
		return SUCCESS;
	}
	if (!policy_of(&request, id, data))
	{
		return NOT_FOUND;
	}
	this->lock->lock(this->lock);
	all = this->policies->create_enumerator(this->policies);
	while (all->enumerate(all, &current))
	{
		/* Their headers are empty yet. */
		if (memeq(current, &request, sizeof(request)))
		{
			this->policies->remove_at(this->policies, all);
			free(current);
			break;
		}
	}
	all->destroy(all);
	this->lock->unlock(this->lock);
	return gateway_request("deletion of a policy", KEYWAY_DELETE_POLICY, &request.header, sizeof(request), &answer,
						   sizeof(answer));
}

METHOD(kernel_ipsec_t, flush_policies, status_t, struct ipsec *this)
{
	struct keyway_header request = {}, answer;
	struct keyway_policy *policy;

	this->lock->lock(this->lock);
	while (this->policies->remove_first(this->policies, (void **)&policy) == SUCCESS)
	{
		free(policy);
	}
	this->lock->unlock(this->lock);
	return gateway_request("deletion of all policies", KEYWAY_FLUSH_POLICIES, &request, sizeof(request), &answer,
						   sizeof(answer));
}

METHOD(kernel_ipsec_t, bypass_socket, bool, struct ipsec *this, int fd, int family)
{
	/* The system has no policy that a socket would have to get past. */
	return TRUE;
}

METHOD(kernel_ipsec_t, enable_udp_decap, bool, struct ipsec *this, int fd, int family, uint16_t port)
{
	/* ESP comes to the gateway's own socket. */
	return TRUE;
}

METHOD(kernel_ipsec_t, destroy, void, struct ipsec *this)
{
	ipsec = NULL;
	this->inbound->destroy_function(this->inbound, free);
	this->policies->destroy_function(this->policies, free);
	this->lock->destroy(this->lock);
	free(this);
}

kernel_ipsec_t *keyway_ipsec_create(void)
{
	INIT(ipsec,
		.public = {
			.get_features = _get_features,
			.get_spi = _get_spi,
			.get_cpi = _get_cpi,
			.add_sa = _add_sa,
			.update_sa = _update_sa,
			.query_sa = _query_sa,
			.del_sa = _del_sa,
			.flush_sas = _flush_sas,
			.add_policy = _add_policy,
			.query_policy = _query_policy,
			.del_policy = _del_policy,
			.flush_policies = _flush_policies,
			.bypass_socket = _bypass_socket,
			.enable_udp_decap = _enable_udp_decap,
			.destroy = _destroy,
		},
		.lock = mutex_create(MUTEX_TYPE_DEFAULT),
		.inbound = linked_list_create(),
		.policies = linked_list_create(),
	);
	return &ipsec->public;
}

void ipsec_expire(const struct keyway_expire *expire)
{
	host_t *destination = host_of_address(&expire->destination);

	if (destination)
	{
		charon->kernel->expire(charon->kernel, IPPROTO_ESP, expire->spi, destination, expire->hard);
		destination->destroy(destination);
	}
}

void ipsec_acquire(const struct keyway_acquire *acquire)
{
	kernel_acquire_data_t packet = {
		.src = traffic_of_selector(&acquire->packet, TRUE),
		.dst = traffic_of_selector(&acquire->packet, FALSE),
	};

	charon->kernel->acquire(charon->kernel, ntohl(acquire->reqid), &packet);
	DESTROY_IF(packet.src);
	DESTROY_IF(packet.dst);
}

void ipsec_restarted(void)
{
	struct keyway_policy *policy, request;
	struct keyway_expire expire = { .hard = TRUE };
	struct keyway_header answer;
	struct keyway_sa *sa;
	linked_list_t *lost;
	enumerator_t *all;

	if (!ipsec)
	{
		return;
	}
	lost = linked_list_create();
	ipsec->lock->lock(ipsec->lock);
	all = ipsec->policies->create_enumerator(ipsec->policies);
	while (all->enumerate(all, &policy))
	{
		request = *policy;
		gateway_request("a policy for the new gateway", KEYWAY_ADD_POLICY, &request.header, sizeof(request), &answer,
						sizeof(answer));
	}
	all->destroy(all);
	while (ipsec->inbound->remove_first(ipsec->inbound, (void **)&sa) == SUCCESS)
	{
		lost->insert_last(lost, sa);
	}
	ipsec->lock->unlock(ipsec->lock);
	if (lost->get_count(lost))
	{
		DBG1(DBG_KNL, "the gateway is a new one: %d SAs are made again", lost->get_count(lost));
	}
	while (lost->remove_first(lost, (void **)&sa) == SUCCESS)
	{
		expire.spi = sa->spi;
		expire.destination = sa->destination;
		ipsec_expire(&expire);
		free(sa);
	}
	lost->destroy(lost);
}
