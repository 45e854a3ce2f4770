// What a Java program does with a directory, by JNDI alone. java.rs starts it; the trust store comes
// in by javax.net.ssl.trustStore.
//
// Jndi.java LDAP-URL LDAPS-URL OTHER-LDAPS-URL READER PASSWORD ADMINISTRATOR PASSWORD
// The third URL is the second by a name that the certificate is not for.
// Jndi.java LDAP-URL ADMINISTRATOR PASSWORD does what can be looked at on its way: without TLS.

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Hashtable;
import java.util.List;
import javax.naming.AuthenticationException;
import javax.naming.CommunicationException;
import javax.naming.Context;
import javax.naming.NameNotFoundException;
import javax.naming.NamingEnumeration;
import javax.naming.NamingException;
import javax.naming.ReferralException;
import javax.naming.directory.Attribute;
import javax.naming.directory.Attributes;
import javax.naming.directory.BasicAttribute;
import javax.naming.directory.BasicAttributes;
import javax.naming.directory.DirContext;
import javax.naming.directory.ModificationItem;
import javax.naming.directory.SearchControls;
import javax.naming.directory.SearchResult;
import javax.naming.ldap.Control;
import javax.naming.ldap.InitialLdapContext;
import javax.naming.ldap.LdapContext;
import javax.naming.ldap.LdapName;
import javax.naming.ldap.PagedResultsControl;
import javax.naming.ldap.PagedResultsResponseControl;
import javax.naming.ldap.Rdn;
import javax.naming.ldap.StartTlsRequest;
import javax.naming.ldap.StartTlsResponse;

public class Jndi {
    static final String BASE = "dc=example,dc=com";
    static final String PEOPLE = "ou=People," + BASE;

    public static void main(String[] given) throws Exception {
        if (given.length == 3) {
            LdapContext open = bound(given[0], given[1], given[2], "ignore");
            changes(open);
            names(open);
            schema(open);
            open.close();
            System.out.println("all well");
            return;
        }
        overStartTls(given[0], given[3], given[4]);
        LdapContext administrator = bound(given[1], given[5], given[6], "ignore");
        changes(administrator);
        names(administrator);
        schema(administrator);
        referrals(administrator, given[1], given[5], given[6]);
        refusals(given[1], given[2], given[3], given[4]);
        pooled(given[1], given[3], given[4]);
        administrator.close();
        System.out.println("all well");
    }

    static Hashtable<String, Object> environment(String url) {
        Hashtable<String, Object> environment = new Hashtable<>();
        environment.put(Context.INITIAL_CONTEXT_FACTORY, "com.sun.jndi.ldap.LdapCtxFactory");
        environment.put(Context.PROVIDER_URL, url);
        environment.put("java.naming.ldap.version", "3");
        environment.put("java.naming.ldap.attributes.binary", "jpegPhoto");
        environment.put("com.sun.jndi.ldap.read.timeout", "20000");
        return environment;
    }

    static LdapContext bound(String url, String name, String password, String referral)
            throws NamingException {
        Hashtable<String, Object> environment = environment(url);
        environment.put(Context.SECURITY_AUTHENTICATION, "simple");
        environment.put(Context.SECURITY_PRINCIPAL, name);
        environment.put(Context.SECURITY_CREDENTIALS, password);
        environment.put(Context.REFERRAL, referral);
        return new InitialLdapContext(environment, null);
    }

    static void overStartTls(String url, String name, String password) throws Exception {
        LdapContext context = new InitialLdapContext(environment(url), null);
        StartTlsResponse tls = (StartTlsResponse) context.extendedOperation(new StartTlsRequest());
        tls.negotiate();
        context.addToEnvironment(Context.SECURITY_AUTHENTICATION, "simple");
        context.addToEnvironment(Context.SECURITY_PRINCIPAL, name);
        context.addToEnvironment(Context.SECURITY_CREDENTIALS, password);
        List<String> found = pages(context, "(objectClass=posixAccount)", 2);
        expect(found.size() == 5 && found.contains("uid=ann"), "pages: " + found);
        Attributes ann = context.getAttributes("uid=ann," + PEOPLE, new String[] {"+", "cn"});
        expect(ann.get("entryUUID") != null, "operational: " + ann);
        expect(ann.get("memberOf").size() == 3, "operational: " + ann);
        expect("Ann Ärmel".equals(ann.get("cn").get()), "UTF-8: " + ann.get("cn"));
        expect(ann.get("userPassword") == null, "a password: " + ann);
        Attributes root = context.getAttributes("", new String[] {"supportedControl"});
        expect(root.get("supportedControl").contains(PagedResultsControl.OID), "root DSE: " + root);
        tls.close();
        context.close();
    }

    static List<String> pages(LdapContext context, String filter, int size) throws Exception {
        List<String> found = new ArrayList<>();
        SearchControls whole = new SearchControls();
        whole.setSearchScope(SearchControls.SUBTREE_SCOPE);
        whole.setReturningAttributes(new String[] {"uid"});
        byte[] cookie = null;
        do {
            context.setRequestControls(
                    new Control[] {new PagedResultsControl(size, cookie, Control.CRITICAL)});
            NamingEnumeration<SearchResult> page = context.search(PEOPLE, filter, whole);
            int entries = 0;
            for (; page.hasMore(); entries++) {
                found.add(page.next().getName());
            }
            expect(entries <= size, "a page of " + entries);
            cookie = null;
            for (Control control : context.getResponseControls()) {
                if (control instanceof PagedResultsResponseControl) {
                    cookie = ((PagedResultsResponseControl) control).getCookie();
                }
            }
        } while (cookie != null);
        context.setRequestControls(null);
        return found;
    }

    static Attributes person(String uid) {
        Attributes person = new BasicAttributes(true);
        person.put(new BasicAttribute("objectClass", "inetOrgPerson"));
        person.put("uid", uid);
        person.put("cn", uid);
        person.put("sn", "Test");
        return person;
    }

    static void changes(LdapContext context) throws Exception {
        String eve = "uid=eve," + PEOPLE;
        byte[] photo = new byte[70000];
        new java.util.Random(1).nextBytes(photo);
        Attributes person = person("eve");
        person.put("jpegPhoto", photo);
        context.createSubcontext(eve, person).close();
        byte[] read = (byte[]) context.getAttributes(eve).get("jpegPhoto").get();
        expect(Arrays.equals(photo, read), "a picture of " + read.length);
        Attribute mail = new BasicAttribute("mail");
        mail.add("eve@example.com");
        mail.add("eve@example.org");
        context.modifyAttributes(eve, new ModificationItem[] {
            new ModificationItem(DirContext.ADD_ATTRIBUTE, mail),
            new ModificationItem(DirContext.REMOVE_ATTRIBUTE,
                    new BasicAttribute("mail", "eve@example.org")),
            new ModificationItem(DirContext.REPLACE_ATTRIBUTE,
                    new BasicAttribute("title", "Engineer")),
        });
        expect(context.getAttributes(eve).get("mail").size() == 1, "changes");
        // JNDI compares by a search of the entry alone that asks for no attributes.
        SearchControls compare = new SearchControls(
                SearchControls.OBJECT_SCOPE, 0, 0, new String[0], false, false);
        expect(context.search(eve, "(title={0})", new Object[] {"ENGINEER"}, compare).hasMore(),
                "compare true");
        expect(!context.search(eve, "(title={0})", new Object[] {"Director"}, compare).hasMore(),
                "compare false");
        String eva = "uid=eva,ou=Teams," + BASE;
        context.rename(eve, eva);
        expect(context.getAttributes(eva).get("uid").contains("eva"), "renamed");
        context.destroySubcontext(eva);
        thrown(NameNotFoundException.class, () -> context.getAttributes(eve));
    }

    // Characters that mean something in a DN, in JNDI's names or in a filter.
    static void names(LdapContext context) throws Exception {
        for (String cn : new String[] {"a/b", "c, \"d\"", "#e+f", "(g*)\\", " h "}) {
            LdapName name = new LdapName(PEOPLE);
            name.add(new Rdn("cn", cn));
            Attributes person = person("x");
            person.put("cn", cn);
            context.createSubcontext(name, person).close();
            SearchControls below = new SearchControls();
            NamingEnumeration<SearchResult> found =
                    context.search(PEOPLE, "(&(uid=x)(cn={0}))", new Object[] {cn}, below);
            expect(found.hasMore(), "found by " + cn);
            LdapName full = new LdapName(found.next().getNameInNamespace());
            String value = full.getRdn(3).getValue().toString();
            expect(full.equals(name) && cn.trim().equals(value.trim()), full + " for " + cn);
            found.close();
            context.destroySubcontext(name);
        }
    }

    static void schema(LdapContext context) throws Exception {
        DirContext schema = context.getSchema("");
        Attributes person = definition(schema, "ClassDefinition/inetOrgPerson");
        expect("organizationalPerson".equals(person.get("SUP").get()), "schema: " + person);
        Attributes uid = definition(schema, "AttributeDefinition/uidNumber");
        expect("1.3.6.1.1.1.1.0".equals(uid.get("NUMERICOID").get()), "schema: " + uid);
        expect(schema.list("SyntaxDefinition").hasMore() && schema.list("MatchingRule").hasMore(),
                "syntaxes and rules");
    }

    static Attributes definition(DirContext schema, String name) throws NamingException {
        return ((DirContext) schema.lookup(name)).getAttributes("");
    }

    static void referrals(LdapContext context, String url, String name, String password)
            throws Exception {
        String elsewhere = "ou=Elsewhere," + BASE;
        Attributes referral = new BasicAttributes(true);
        Attribute classes = new BasicAttribute("objectClass", "referral");
        classes.add("extensibleObject");
        referral.put(classes);
        referral.put("ou", "Elsewhere");
        referral.put("ref", url + "/" + PEOPLE.replace(" ", "%20"));
        // A context that ignores referrals sends ManageDsaIT with everything.
        context.createSubcontext(elsewhere, referral).close();
        LdapContext throwing = bound(url, name, password, "throw");
        try {
            throwing.getAttributes("uid=ann," + elsewhere);
            expect(false, "no referral");
        } catch (ReferralException why) {
            String to = why.getReferralInfo().toString();
            expect(to.contains(PEOPLE), "refers to " + to);
        }
        LdapContext following = bound(url, name, password, "follow");
        Attributes ann = following.getAttributes("uid=ann," + elsewhere);
        expect(ann.get("mail").contains("ann@example.com"), "followed: " + ann);
        SearchControls whole = new SearchControls();
        whole.setSearchScope(SearchControls.SUBTREE_SCOPE);
        NamingEnumeration<SearchResult> found = following.search(BASE, "(uid=ann)", whole);
        int entries = 0;
        for (; found.hasMore(); entries++) {
            found.next();
        }
        expect(entries == 2, "here and there: " + entries);
        context.destroySubcontext(elsewhere);
        throwing.close();
        following.close();
    }

    static void refusals(String url, String other, String name, String password) throws Exception {
        thrown(AuthenticationException.class, () -> bound(url, name, "wrong secret", "ignore"));
        thrown(CommunicationException.class, () -> bound(other, name, password, "ignore"));
        LdapContext context = bound(url, name, password, "ignore");
        String frank = "uid=frank," + PEOPLE;
        thrown(javax.naming.NoPermissionException.class,
                () -> context.createSubcontext(frank, person("frank")));
        thrown(javax.naming.directory.InvalidSearchFilterException.class,
                () -> context.search(BASE, "(uid=", new SearchControls()));
        context.close();
    }

    // A pool gives a connection to the next one who asks, as Tomcat and Spring do.
    static void pooled(String url, String name, String password) throws Exception {
        System.setProperty("com.sun.jndi.ldap.connect.pool.protocol", "plain ssl");
        for (int round = 0; round < 50; round++) {
            Hashtable<String, Object> environment = environment(url);
            environment.put("com.sun.jndi.ldap.connect.pool", "true");
            environment.put(Context.SECURITY_AUTHENTICATION, "simple");
            environment.put(Context.SECURITY_PRINCIPAL, name);
            environment.put(Context.SECURITY_CREDENTIALS, password);
            LdapContext context = new InitialLdapContext(environment, null);
            expect(context.getAttributes("uid=bob," + PEOPLE).get("sn") != null, "pooled");
            context.close();
        }
    }

    interface Attempt {
        void run() throws NamingException, IOException;
    }

    static void thrown(Class<? extends Exception> wanted, Attempt attempt) {
        try {
            attempt.run();
        } catch (Exception why) {
            expect(wanted.isInstance(why), wanted + ": " + why);
            return;
        }
        expect(false, "no " + wanted);
    }

    static void expect(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
